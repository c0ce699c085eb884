"""When a rule runs in schedulers that follow the wall clock alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import dropwhile, takewhile
from zoneinfo import ZoneInfo

from cron.zone import canonical_name


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
