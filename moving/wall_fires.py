"""When a rule runs in schedulers that follow the wall clock alone."""

from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import dropwhile, takewhile
from typing import Any
from zoneinfo import ZoneInfo

from cron import CronSchedule
from cron.fields import HOUR
from cron.zone import canonical_name
from moving.cron_text import values_of


@dataclass(frozen=True, slots=True)
class WallFires:
    """A cron rule at each minute whose time on the wall matches.

    A time that the clocks skip is left out. One that they repeat counts twice, or, with `once`, the
    first time only.
    """

    rule: str
    zone: str
    once: bool = False

    def between(self, since: datetime, until: datetime) -> Sequence[datetime]:
        """Return the instants in (since, until]."""
        minute, hour, *days = self.rule.split(" ")
        hours, zone = values_of(HOUR, hour) or set(), ZoneInfo(canonical_name(self.zone))
        # A rule for each hour follows the clock on the wall.
        every_hour = CronSchedule(" ".join([minute, "*", *days]), self.zone)
        return [
            at
            for at in every_hour.between(since, until)
            if (wall := at.astimezone(zone)).hour in hours and not (self.once and wall.fold)
        ]


@dataclass(frozen=True, slots=True)
class GridFires:
    """An interval that counts from its first instant, whatever the wall clock shows."""

    first: datetime
    every: timedelta

    def between(self, since: datetime, until: datetime) -> Sequence[datetime]:
        """Return the instants in (since, until]."""
        begin = self.next(since)
        return [begin + self.every * number for number in range((until - begin) // self.every + 1)]

    def next(self, after: datetime) -> datetime:
        """Return the first instant after another."""
        passed = (after - self.first) // self.every + 1
        return self.first + self.every * max(passed, 0)


@dataclass(frozen=True, slots=True)
class DayFires:
    """The days of a daily recurrence rule without an interval, counted one by one.

    A time that the clocks skip is left out; one that they repeat counts the first time.
    """

    parts: Mapping[str, Sequence[str]]
    times: tuple[time, ...]
    zone: str

    @classmethod
    def of(cls, rule: Mapping[str, Any]) -> "DayFires":
        """Return the days of a rule of a document."""
        pairs = (part.split("=") for part in rule["rrule"].split(";"))
        at = [rule["at"]] if isinstance(rule["at"], str) else rule["at"]
        times = tuple(map(time.fromisoformat, at))
        return cls({key: text.split(",") for key, text in pairs}, times, rule["timezone"])

    def between(self, since: datetime, until: datetime) -> Sequence[datetime]:
        """Return the instants in (since, until]."""
        zone = ZoneInfo(canonical_name(self.zone))
        first, last = since.astimezone(zone).date(), until.astimezone(zone).date()
        days = (first + timedelta(days=n) for n in range((last - first).days + 1))
        walls = (
            datetime.combine(day, at, zone) for day in days if self._is(day) for at in self.times
        )
        found = [(wall, wall.astimezone(UTC)) for wall in walls]
        is_shown = [at for wall, at in found if at.astimezone(zone).time() == wall.time()]
        return [at for at in is_shown if since < at <= until]

    def _is(self, day: date) -> bool:
        weekday = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")[day.weekday()]
        length = monthrange(day.year, day.month)[1]
        of_month = {str(day.day), str(day.day - length - 1)}
        asked = (
            ("BYMONTH", {str(day.month)}),
            ("BYMONTHDAY", of_month),
            ("BYDAY", {weekday}),
        )
        return all(key not in self.parts or of_day & {*self.parts[key]} for key, of_day in asked)


@dataclass(frozen=True, slots=True)
class RecurrenceFires:
    """When python-dateutil has a rule occur: a time that the clocks skip moves by the gap."""

    rule: str
    first: datetime
    zone: str
    excepted: frozenset[date] = frozenset()

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the instants in (since, until]."""
        after = dropwhile(lambda at: at <= since, self._all())
        # A wall clock that is set back shows them out of order, by less than a day.
        near = takewhile(lambda at: at <= until + timedelta(days=1), after)
        return [at for at in near if at <= until]

    def next(self, after: datetime) -> datetime | None:
        """Return the first instant after another, None if there is none."""
        return next(dropwhile(lambda at: at <= after, self._all()), None)

    @property
    def begins_off(self) -> bool:
        """Whether the first instant is left out by the rule, and not by an exception."""
        is_excepted = self.first.date() in self.excepted
        return not is_excepted and next(self._walls(), None) != self.first

    def _all(self) -> Iterator[datetime]:
        zone = ZoneInfo(canonical_name(self.zone))
        for wall in self._walls():
            if wall.date() not in self.excepted:
                yield wall.replace(tzinfo=zone).astimezone(UTC)

    def _walls(self) -> Iterator[datetime]:
        from dateutil.rrule import rrulestr

        zone = ZoneInfo(canonical_name(self.zone))
        return iter(rrulestr(_local(self.rule, zone), dtstart=self.first))


def _local(rule: str, zone: ZoneInfo) -> str:
    """Return a rule whose UNTIL is on the clock of `zone`, and includes its day."""
    parts = dict(part.split("=") for part in rule.split(";"))
    until = parts.get("UNTIL", "")
    if until.endswith("Z"):
        at = datetime.strptime(until, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        parts["UNTIL"] = f"{at.astimezone(zone):%Y%m%dT%H%M%S}"
    elif until and "T" not in until:
        parts["UNTIL"] = f"{until}T235959"
    return ";".join(f"{key}={value}" for key, value in parts.items())
