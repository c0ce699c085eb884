"""Report what was due during a downtime, counted in the tables: daemons may share the work."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from models.sql import read_clock
from models.store import key_values
from models.store.actions.downtime import in_words, last_downtime, stored_span
from models.store.notices import missed as notices
from models.store.notices.missed import Episode
from models.values import format_instant
from models.values.durations import lasting
from runtime.database import reading
from runtime.logs.events import EventLog

logger = EventLog("minutebook.tick")

# By default, two ticks.
LONGEST_GAP = timedelta(minutes=2)


@dataclass(frozen=True)
class Outage:
    """A span (since, until] in which no daemon ticked."""

    since: datetime
    until: datetime

    def covers(self, first_at: datetime, last_at: datetime) -> bool:
        """Return whether occurrences between these instants were due in it."""
        return self.since < first_at and last_at <= self.until

    @cached_property
    def text(self) -> str:
        """The outage as the cause of what was missed."""
        span = f"from {format_instant(self.since)} to {format_instant(self.until)}"
        return f"no daemon ticked {span} ({lasting(self.until - self.since)})"

    @cached_property
    def episode(self) -> Episode:
        """The episode of what was missed in it."""
        return Episode(f"down since {self.since.isoformat()}", self.text)


def outage_at(connection: sa.Connection, at: datetime, longest_gap: timedelta) -> Outage | None:
    """Return the outage in which an instant lies, if it is the last one or is not over yet."""
    span = stored_span(connection)
    if span is not None and span.since < at <= span.until:
        return Outage(span.since, span.until)
    last_now, now = (
        key_values.instant_value(connection, key_values.LAST_NOW),
        read_clock(connection),
    )
    if last_now is not None and last_now < at <= now and now - last_now > longest_gap:
        return Outage(last_now, now)
    return None


def note(
    connection: sa.Connection, last_now: datetime | None, now: datetime, longest_gap: timedelta
) -> bool:
    """Return whether the last tick is more than `longest_gap` ago, and store the downtime if so.

    In the transaction that stores `now` as the last tick's: no daemon decides what was due
    meanwhile without its cause, and a killed one leaves it.
    """
    if last_now is None or now - last_now <= longest_gap:
        return False
    # Measured on the database's clock: `now` may be any instant (`--at`).
    recorded_from = read_clock(connection) - (now - last_now)
    instants = {"since": last_now, "until": now, "recorded_from": recorded_from}
    fact = json.dumps({key: at.isoformat() for key, at in instants.items()})
    key_values.set_value(connection, key_values.DOWNTIME, fact)
    return True


def report(engine: sa.Engine) -> dict[str, Any] | None:
    """Log the outcomes of the last downtime, and return them."""
    with reading(engine) as connection:
        found = last_downtime(connection)
    if found is not None:
        logger.warning("downtime", "down {what}", in_words(found))
    return found


def settle_notice(connection: sa.Connection, missed: int) -> None:
    """Let the one notice for all actions of the last downtime have its figures, until it is sent.

    In the transaction that records the last of what this tick `missed`, if it missed any. A later
    tick may find more: an action has a thousand occurrences, or a daemon was killed.
    """
    span = stored_span(connection) if missed else None
    episode = None if span is None else Outage(span.since, span.until).episode
    if episode is None or not notices.hold(connection, episode):
        return
    found = last_downtime(connection) or {}
    counted = {key: found[key] for key in ("actions", "missed", "most_missed")}
    notices.settle(connection, episode, counted)
