"""Events of an iCalendar file, as entries that run one work."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from cron import InvalidRule
from cron.recurrence import read_recurrence
from cron.recurrent_days import RecurrentMinutes
from cron.zone import canonical_name
from models.errors import Refused as RefusedCommand
from models.values import format_instant
from models.values.zones import instant_of
from moving.beat import NOTHING_TO_DO, once
from moving.entries import CannotMove, Entry, Refused, entry_or_refused
from moving.wall_fires import RecurrenceFires

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
        calendar = Calendar.from_ical(text)
        events = calendar.walk("VEVENT")
    except (ValueError, KeyError, IndexError) as error:
        reason = " ".join(str(error).split())[:200]
        raise RefusedCommand(
            f"{file} is not an iCalendar file: {reason}; export it again"
        ) from None
    changed = _changed(events)
    for number, one in enumerate(calendar.walk("VTODO") + calendar.walk("VJOURNAL")):
        name, where = _named(one, file, number)
        why = f"it is a {one.name}, and events alone are due at their begin"
        yield Refused(name, where, why, "write an action for it")
    for number, event in enumerate(events):
        name, where = _named(event, file, number)
        make = partial(_entry, event, (name, where), operations, (zone, now))
        made = entry_or_refused(name, where, make)
        others = changed.get(str(event.get("UID")), ())
        if isinstance(made, Entry) and others:
            shown = ", ".join(sorted(others))
            remark = f"the calendar has other events in place of {shown}, which the action keeps"
            made = replace(made, remarks=(*made.remarks, remark))
        yield made


def _named(component: Any, file: str, number: int) -> tuple[str, str]:
    """Return the name of an event and its place."""
    title = " ".join(str(component.get("SUMMARY", "")).split())[:LONGEST_NAME]
    return title or f"event {number + 1}", f"{file} {str(component.get('UID', number))[:100]}"


def _changed(events: Iterable[Any]) -> dict[str, set[str]]:
    """Return the instants that other events of the same UID stand for, by that UID."""
    found: dict[str, set[str]] = {}
    for event in events:
        if "RECURRENCE-ID" in event:
            at = getattr(event.get("RECURRENCE-ID"), "dt", None)
            found.setdefault(str(event.get("UID")), set()).add(str(at)[:60])
    return found


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
    if str(event.get("STATUS", "")).upper() == "CANCELLED":
        raise CannotMove("it is cancelled", NOTHING_TO_DO)
    begin = _start_of(event)
    zone = _zone_of(begin) or zone
    wall = begin.replace(tzinfo=None)
    rule = event.get("RRULE")
    remarks: tuple[str, ...] = ()
    if rule is None:
        when: dict[str, Any] = once(instant_of(wall, zone), now)
        fires = None
    else:
        when, fires = _recurrence(rule.to_ical().decode(), wall, zone)
        if excepted := _excepted(event, zone, wall, "BYHOUR" in when["rrule"]):
            when["except"] = sorted(one.isoformat() for one in excepted)
            fires = replace(fires, excepted=frozenset(excepted))
        remarks = tuple(_of_begin(fires, now))
    return Entry(
        name=named[0],
        where=named[1],
        owner=OWNER,
        description=" ".join(str(event.get("DESCRIPTION", "")).split())[:1_000],
        operations=operations,
        when=when,
        fires=fires,
        remarks=remarks,
    )


def _of_begin(fires: RecurrenceFires, now: datetime) -> Iterator[str]:
    """Yield what to say of a begin that is ahead and not one of the rule's (RFC 5545, 3.8.5.3)."""
    begin = instant_of(fires.first, fires.zone)
    if begin > now and fires.begins_off:
        at = format_instant(begin)
        yield f"calendars also show it at its DTSTART, {at}, which its RRULE leaves out"


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


def _recurrence(text: str, wall: datetime, zone: str) -> tuple[dict[str, Any], RecurrenceFires]:
    times = [60 * wall.hour + wall.minute]
    try:
        rule = read_recurrence(text)
        RecurrentMinutes(rule, rule.times or times, wall.date()).check()
    except InvalidRule as error:
        raise CannotMove(str(error), "correct the calendar") from None
    minute = wall.replace(second=0, microsecond=0)
    when = {"rrule": rule.text, "timezone": zone, "starting_at": minute.isoformat()}
    if not rule.times:
        when["at"] = f"{wall:%H:%M}"
    return when, RecurrenceFires(rule.text, wall, zone)


def _excepted(event: Any, zone: str, begin: datetime, several: bool) -> set[date]:
    """Return the days of EXDATE, on the clock of `zone`.

    A time at which the event does not begin leaves out nothing. Raises CannotMove for one of
    `several` times of a day, because an action leaves out whole days.
    """
    found = event.get("EXDATE") or []
    lists = found if isinstance(found, list) else [found]
    own = ZoneInfo(zone)
    days = set()
    for one in (one.dt for each in lists for one in each.dts):
        if not isinstance(one, datetime):
            days.add(one)
            continue
        wall = one.astimezone(own).replace(tzinfo=None) if one.tzinfo else one
        if several:
            why = f"its EXDATE {wall} leaves out one of several times of a day"
            raise CannotMove(why, "write an action for each time of the day")
        if wall.time() == begin.time():
            days.add(wall.date())
    return days
