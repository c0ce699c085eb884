"""Report what was due during a downtime, counted in the tables: daemons may share the work."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from models.sql import read_clock
from models.store import facts
from models.store.actions import downtime
from models.store.actions.downtime import Span
from models.store.notices import missed as notices
from models.store.notices.missed import Episode
from models.store.ticks import Found
from models.stored import instant_in
from models.values import format_instant
from models.values.durations import lasting
from runtime.database import reading
from runtime.logs.events import EventLog

logger = EventLog("minutebook.tick")

MOST_NAMED = 5


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
    span = _stored_span(connection)
    if span is not None and span.since < at <= span.until:
        return Outage(span.since, span.until)
    last_now, now = facts.instant_fact(connection, facts.LAST_NOW), read_clock(connection)
    if last_now is not None and last_now < at <= now and now - last_now > longest_gap:
        return Outage(last_now, now)
    return None


def note(engine: sa.Engine, found: Found, longest_gap: timedelta) -> bool:
    """Return whether the last tick is more than two ticks ago, and store the downtime if so.

    The caller calls it before deciding anything: the fact survives a killed tick.
    """
    if found.last_now is None or found.now - found.last_now <= longest_gap:
        return False
    instants = {"since": found.last_now, "until": found.now}
    with engine.begin() as connection:
        # Measured on the database's clock: `now` may be any instant (`--at`).
        instants["recorded_from"] = read_clock(connection) - (found.now - found.last_now)
        fact = json.dumps({key: at.isoformat() for key, at in instants.items()})
        facts.set_fact(connection, facts.DOWNTIME, fact)
    return True


def report(engine: sa.Engine) -> dict[str, Any] | None:
    """Log the outcomes of the last downtime, and return them."""
    with reading(engine) as connection:
        found = last_downtime(connection)
    if found is not None:
        logger.warning("downtime", "down {what}", in_words(found))
    return found


def settle_notice(engine: sa.Engine) -> None:
    """Let the one notice for all actions of the last downtime have its figures, until it is sent.

    A later tick may find more: an action has a thousand occurrences, or a daemon was killed.
    """
    with engine.begin() as connection:
        span = _stored_span(connection)
        episode = None if span is None else Outage(span.since, span.until).episode
        if episode is None or not notices.is_held(connection, episode):
            return
        found = last_downtime(connection) or {}
        counted = {key: found[key] for key in ("actions", "missed", "most_missed")}
        notices.settle(connection, episode, counted)


def last_downtime(
    connection: sa.Connection, ended_after: datetime | None = None
) -> dict[str, Any] | None:
    """Return the last downtime and the outcomes of its occurrences as JSON, or None.

    A downtime that ended at or before `ended_after` is ignored.
    """
    span = _stored_span(connection)
    if span is None or (ended_after is not None and span.until <= ended_after):
        return None
    found = downtime.outcomes(connection, span)
    most = sorted(found.missed.items(), key=lambda one: (-one[1], one[0]))[:MOST_NAMED]
    names = downtime.names_of(connection, [uid for uid, _ in most])
    missed = found.missed.total()
    return {
        "since": format_instant(span.since),
        "until": format_instant(span.until),
        "occurrences": found.sent + missed,
        "sent": found.sent,
        "missed": missed,
        "actions": sum(count > 0 for count in found.missed.values()),
        "most_missed": [{"name": names[uid], "missed": count} for uid, count in most if count],
    }


def _stored_span(connection: sa.Connection) -> Span | None:
    fact = facts.json_fact(connection, facts.DOWNTIME)
    since, until = (instant_in(fact.get(key)) for key in ("since", "until"))
    recorded_from = instant_in(fact.get("recorded_from"))
    if since is None or until is None or recorded_from is None:
        return None
    return Span(since, until, recorded_from)


def in_words(found: dict[str, Any]) -> str:
    """Return a downtime as one line, without the word itself."""
    counts = f"{found['occurrences']} occurrences, {found['sent']} sent, {found['missed']} missed"
    names = ", ".join(f'"{one["name"]}" {one["missed"]}' for one in found["most_missed"])
    return f"{found['since']} to {found['until']}: {counts}{': ' + names if names else ''}"
