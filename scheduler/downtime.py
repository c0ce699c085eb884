"""Report what was due during a downtime, counted in the tables: daemons may share the work."""

import json
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.sql import read_clock
from models.store import key_values
from models.store.actions.downtime import Span, in_words, last_downtime, stored_span
from runtime.database import reading
from runtime.logs.events import EventLog

logger = EventLog("minutebook.tick")

# By default, two ticks.
LONGEST_GAP = timedelta(minutes=2)


def outage_at(connection: sa.Connection, at: datetime, longest_gap: timedelta) -> Span | None:
    """Return the outage in which an instant lies, if it is the last one or is not over yet."""
    span = stored_span(connection)
    if span is not None and span.since < at <= span.until:
        return span
    last_now, now = (
        key_values.instant_value(connection, key_values.LAST_NOW),
        read_clock(connection),
    )
    if last_now is not None and last_now < at <= now and now - last_now > longest_gap:
        return Span(last_now, now, now)
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
