"""Begin and end the quiet period of an installation."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from pydantic import Field

from models.errors import Refused
from models.sql import read_clock
from models.store import quiet
from models.values import format_instant, parse_instant
from models.values.durations import parse_span
from views.finding import refusing
from views.installation import Installation
from views.verbs import OPERATE, Verb
from views.view import Instant, View

# A forgotten period ends by itself.
LONGEST = timedelta(days=30)


class QuietPeriod(View):
    """The quiet period after a change."""

    until: Instant | None = Field(description="When it ends; null if it has ended.")
    was_until: Instant | None = Field(description="When it would have ended before this change.")
    waiting: int = Field(description="Operations that waited for its end until this change.")


@Verb("pause_installation", "POST /api/installation:pause", OPERATE, is_of_installation=True)
def pause(installation: Installation, until: str) -> QuietPeriod:
    """Begin a quiet period, or move its end; what is due is recorded, and sent afterwards.

    An instant without an offset is read in the zone of the request's small app. Raises Refused for
    an end that is not after now, or more than 30 days away.
    """
    with installation.engine.begin() as connection:
        now = read_clock(connection)
        ends_at = end_of(until, now, installation.small_app.zone)
        found = _state(connection, ends_at)
        quiet.begin(connection, ends_at)
        details = {"until": format_instant(ends_at)}
        installation.audit(connection, None, "installation.pause", {"sending": details})
    return found


@Verb("resume_installation", "POST /api/installation:resume", OPERATE, is_of_installation=True)
def resume(installation: Installation) -> QuietPeriod:
    """End the quiet period; the next tick sends what waited."""
    with installation.engine.begin() as connection:
        found = _state(connection, None)
        if found.was_until is not None:
            quiet.end(connection)
            installation.audit(connection, None, "installation.resume", {"sending": None})
    return found


def end_of(text: str, now: datetime, zone: str) -> datetime:
    """Return the end that a user wrote, an instant or a duration; raises Refused."""
    with refusing("until", text):
        if text.startswith("P"):
            ends_at = now.replace(microsecond=0) + parse_span(text, most=LONGEST)
        else:
            ends_at = parse_instant(text, zone)
    if not now < ends_at <= now + LONGEST:
        last = format_instant(now + LONGEST)
        raise Refused(f"until {text!r} is not within the next 30 days; write one up to {last}")
    return ends_at


def _state(connection: sa.Connection, until: datetime | None) -> QuietPeriod:
    was_until = quiet.until(connection)
    waiting = 0 if was_until is None else quiet.waiting(connection, was_until)
    return QuietPeriod(until=until, was_until=was_until, waiting=waiting)
