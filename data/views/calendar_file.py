"""Turn the events of an iCalendar file into the entries of a calendar."""

from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

from pydantic import Field

from data.calendar_events import MOST_EVENTS, entries_between
from data.failures import SourceFailed
from models.errors import InvalidDocument, Problem, Refused
from runtime.clock import utc_now
from runtime.extras import HOW_TO_INSTALL
from views.files import read_text
from views.view import View


class CalendarEntries(View):
    """The events of an iCalendar file, as a calendar of a small app lists them."""

    entries: tuple[dict[str, str], ...] = Field(description="Dates and spans, in order.")


def entries_of(file: Path, years: int) -> CalendarEntries:
    """Return the events of a file from today until so many years from now.

    Days stay days; other times are in UTC. Events without a duration close nothing and are left
    out. Raises InvalidDocument for a file that is no calendar or takes too long, and Refused for
    more than 1,000 events, or without the extra `calendar`.
    """
    if not all(map(find_spec, ("icalendar", "recurring_ical_events"))):
        raise Refused(
            f"iCalendar files need the extra 'calendar'; add it here as {HOW_TO_INSTALL} shows"
        )
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    until = today + timedelta(days=366 * years)
    try:
        found = entries_between(read_text(file), today, until)
    except SourceFailed as error:
        raise InvalidDocument([Problem(str(file), None, str(error))]) from None
    if len(found) > MOST_EVENTS:
        raise Refused(f"{file} has more than {MOST_EVENTS} events; write fewer --years")
    return CalendarEntries(entries=tuple(found))
