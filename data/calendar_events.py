"""The events of an iCalendar file, read in a child process with limits.

A few bytes of a rule can yield nothing for eight thousand years, and a library looks at each day.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

from data.bounded import client
from data.bounded.child import Call
from data.bounded.limits import Limits
from data.failures import SourceFailed
from data.watch import Watch
from models.values import format_instant

LIMITS = Limits(memory_mb=512, cpu_s=10, time_s=60)
MOST_EVENTS = 1_000
A_DAY = timedelta(days=1)
LONGEST_NAME = 200
# Recurrences that give no entry are passed over up to this many.
MOST_SEEN = 10_000
AT_MOST_DAILY = {"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}
WITHIN_A_DAY = {"BYHOUR", "BYMINUTE", "BYSECOND"}


def entries_between(text: str, since: datetime, until: datetime) -> list[dict[str, str]]:
    """Return the events of a file that begin before `until`, at most MOST_EVENTS and one more.

    Raises SourceFailed for a text that is no calendar, or takes too long.
    """
    arguments = {"text": text, "since": since.isoformat(), "until": until.isoformat()}
    call = client.Call("data.calendar_events:read", arguments)
    found: list[dict[str, str]] = client.run(call, LIMITS, Watch())
    return found


def read(call: Call) -> list[dict[str, str]]:
    """Return the events of the text of `call`; called in the child."""
    since, until = (datetime.fromisoformat(call.arguments[name]) for name in ("since", "until"))
    try:
        return list(islice(_entries(call.arguments["text"], since, until), MOST_EVENTS + 1))
    except (ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise SourceFailed(f"is not an iCalendar file: {reason}", permanent=True) from None


def _entries(text: str, since: datetime, until: datetime) -> Iterator[dict[str, str]]:
    import recurring_ical_events
    from icalendar import Calendar

    calendar = Calendar.from_ical(text)
    for event in calendar.walk("VEVENT"):
        rule = event.get("RRULE") or {}
        if rule.get("FREQ", ["YEARLY"])[0] not in AT_MOST_DAILY or WITHIN_A_DAY & set(rule):
            raise ValueError("an event repeats more often than daily")
    events = recurring_ical_events.of(calendar).after(since)
    for event in islice(events, MOST_SEEN):
        begin = event.start
        if _as_instant(begin) >= until:
            return
        entry = _entry(begin, event.end)
        if entry is not None:
            name = " ".join(str(event.get("SUMMARY", "")).split())[:LONGEST_NAME]
            yield entry | ({"name": name} if name else {})


def _entry(begin: Any, end: Any) -> dict[str, str] | None:
    """Return an event's dates or span; None if it takes no time."""
    if isinstance(begin, datetime):
        since, until = _as_instant(begin), _as_instant(end)
        if until <= since:
            return None
        return {"from": format_instant(since), "until": format_instant(until)}
    # The end of whole days is the day after the last.
    last = max(begin, end - A_DAY)
    return {"date": str(begin) if last == begin else f"{begin}/{last}"}


def _as_instant(at: date | datetime) -> datetime:
    """Return a date or time in UTC; one without a zone is read in UTC."""
    if not isinstance(at, datetime):
        return datetime(at.year, at.month, at.day, tzinfo=UTC)
    return at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)
