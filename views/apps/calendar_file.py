"""Turn the events of an iCalendar file into the entries of a calendar."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field

from models.errors import InvalidDocument, Problem, Refused
from models.values import format_instant
from runtime.clock import utc_now
from runtime.extras import HOW_TO_INSTALL
from views.files import read_text
from views.view import View

MOST_EVENTS = 1_000
A_DAY = timedelta(days=1)
LONGEST_NAME = 200
# Recurrences that give no entry are passed over up to this many.
MOST_SEEN = 10_000
AT_MOST_DAILY = {"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}
WITHIN_A_DAY = {"BYHOUR", "BYMINUTE", "BYSECOND"}


class CalendarEntries(View):
    """The events of an iCalendar file, as a calendar of a small app lists them."""

    entries: tuple[dict[str, str], ...] = Field(description="Dates and spans, in order.")


def entries_of(file: Path, years: int) -> CalendarEntries:
    """Return the events of a file from today until so many years from now.

    Days stay days; other times are in UTC. Events without a duration close nothing and are left
    out. Raises InvalidDocument for a file that is no calendar, and Refused for more than 1,000
    events, or without the extra `calendar`.
    """
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    until = today + timedelta(days=366 * years)
    text = read_text(file)
    try:
        found = tuple(islice(_entries(text, today, until), MOST_EVENTS + 1))
    except (ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InvalidDocument(
            [Problem(str(file), None, f"is not an iCalendar file: {reason}")]
        ) from None
    if len(found) > MOST_EVENTS:
        raise Refused(f"{file} has more than {MOST_EVENTS} events; write fewer --years")
    return CalendarEntries(entries=found)


def _entries(text: str, since: datetime, until: datetime) -> Iterator[dict[str, str]]:
    try:
        import recurring_ical_events
        from icalendar import Calendar
    except ImportError:
        raise Refused(
            f"iCalendar files need the extra 'calendar'; add it here as {HOW_TO_INSTALL} shows"
        ) from None

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
