"""Events of an iCalendar file, as entries that run one work."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import dropwhile, takewhile
from typing import Any
from zoneinfo import ZoneInfo

from cron import InvalidRule
from cron.recurrence import RecurrentMinutes, read_recurrence
from cron.zone import canonical_name
from models.errors import Refused as RefusedCommand
from models.values.zones import instant_of
from moving.beat import once
from moving.entries import CannotMove, Entry, Refused, entry_or_refused

OWNER = "import:icalendar"
LONGEST_NAME = 200
# What makes an event more than a rule with exceptions.
LEFT_OUT = ("RDATE", "EXRULE", "RECURRENCE-ID")


def entries_of(
    text: str, file: str, operations: Mapping[str, Any], zone: str, now: datetime
) -> Iterator[Entry | Refused]:
    """Yield the events of a calendar; raises Refused for another text.

    Each runs `operations` at its begin. Times without a zone are read in `zone`.
    """
    from icalendar import Calendar

    try:
        events = Calendar.from_ical(text).walk("VEVENT")
    except (ValueError, KeyError, IndexError) as error:
        reason = " ".join(str(error).split())[:200]
        raise RefusedCommand(
            f"{file} is not an iCalendar file: {reason}; export it again"
        ) from None
    for number, event in enumerate(events):
        name = (
            " ".join(str(event.get("SUMMARY", "")).split())[:LONGEST_NAME] or f"event {number + 1}"
        )
        where = f"{file} {str(event.get('UID', number))[:100]}"
        make = partial(_entry, event, (name, where), operations, (zone, now))
        yield entry_or_refused(name, where, make)


def _entry(
    event: Any,
    named: tuple[str, str],
    operations: Mapping[str, Any],
    place: tuple[str, datetime],
) -> Entry:
    zone, now = place
    for key in LEFT_OUT:
        if key in event:
            raise CannotMove(f"it has {key}", "write an action for each part of it")
    begin = _start_of(event)
    zone = _zone_of(begin) or zone
    wall = begin.replace(tzinfo=None)
    rule = event.get("RRULE")
    if rule is None:
        when: dict[str, Any] = once(instant_of(wall, zone), now)
        fires = None
    else:
        when, fires = _recurrence(rule.to_ical().decode(), wall, zone)
        if excepted := _excepted(event, zone):
            when["except"] = sorted(one.isoformat() for one in excepted)
            fires = replace(fires, excepted=frozenset(excepted))
    return Entry(
        name=named[0],
        where=named[1],
        owner=OWNER,
        description=" ".join(str(event.get("DESCRIPTION", "")).split())[:1_000],
        operations=operations,
        when=when,
        fires=fires,
    )


def _start_of(event: Any) -> datetime:
    begin = getattr(event.get("DTSTART"), "dt", None)
    if isinstance(begin, datetime):
        return begin
    if isinstance(begin, date):
        return datetime(begin.year, begin.month, begin.day)  # noqa: DTZ001 - a wall clock
    raise CannotMove("it has no DTSTART", "correct the calendar")


def _zone_of(at: datetime) -> str | None:
    """Return the name of the zone of a time, None for a time on any clock."""
    if at.tzinfo is None:
        return None
    name = getattr(at.tzinfo, "key", None) or str(at.tzname())
    try:
        return canonical_name(name)
    except InvalidRule:
        raise CannotMove(f"its time zone {name[:60]!r} is unknown", "name an IANA zone") from None


def _recurrence(text: str, wall: datetime, zone: str) -> tuple[dict[str, Any], "EventFires"]:
    times = [60 * wall.hour + wall.minute]
    try:
        rule = read_recurrence(text)
        RecurrentMinutes(rule, rule.times or times, wall.date()).check()
    except InvalidRule as error:
        raise CannotMove(str(error), "correct the calendar") from None
    when = {"rrule": rule.text, "timezone": zone, "starting_at": wall.isoformat()}
    if not rule.times:
        when["at"] = f"{wall:%H:%M}"
    return when, EventFires(rule.text, wall, zone)


def _excepted(event: Any, zone: str) -> set[date]:
    """Return the days of EXDATE, on the clock of `zone`."""
    found = event.get("EXDATE") or []
    lists = found if isinstance(found, list) else [found]
    own = ZoneInfo(zone)
    return {
        (one.dt.astimezone(own) if one.dt.tzinfo else one.dt).date()
        if isinstance(one.dt, datetime)
        else one.dt
        for each in lists
        for one in each.dts
    }


@dataclass(frozen=True, slots=True)
class EventFires:
    """When python-dateutil has a rule occur: a time that the clocks skip moves by the gap."""

    rule: str
    first: datetime
    zone: str
    excepted: frozenset[date] = frozenset()

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the instants in (since, until]."""
        from dateutil.rrule import rrulestr

        zone = ZoneInfo(self.zone)
        ends = until.astimezone(zone).replace(tzinfo=None) + timedelta(days=1)
        walls = takewhile(
            lambda wall: wall < ends, rrulestr(_local(self.rule, zone), dtstart=self.first)
        )
        found = (
            wall.replace(tzinfo=zone).astimezone(UTC)
            for wall in walls
            if wall.date() not in self.excepted
        )
        return [at for at in dropwhile(lambda at: at <= since, found) if at <= until]


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
