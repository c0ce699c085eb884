"""Downtimes: which one a missed occurrence lies in, and what was due meanwhile.

What is due is counted in the tables: daemons may share the work.
"""

import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from broker.in_use import settings_in_use
from models.sql import read_clock
from models.store import key_values, ticks
from models.store.actions.downtime import Span, in_words, last_downtime, stored_span
from models.store.notices import findings
from models.store.notices.findings import Found
from models.store.notices.missed import found
from models.store.operations import record
from runtime.database import reading
from runtime.logs.events import EventLog
from scheduler.decision import OVERTAKEN, TOO_LATE

logger = EventLog("minutebook.tick")

Rows = Sequence[dict[str, Any]]
# By default, two ticks.
LONGEST_GAP = timedelta(minutes=2)


def outages(connection: sa.Connection, longest_gap: timedelta) -> tuple[Span, ...]:
    """Return the last outage, and the one that is not over yet: each may be missing."""
    stored = stored_span(connection)
    found = () if stored is None else (stored,)
    last_now, now = (
        key_values.instant_value(connection, key_values.LAST_NOW),
        read_clock(connection),
    )
    if last_now is None or now - last_now <= longest_gap:
        return found
    return (*found, Span(_since(connection, last_now), now, now))


def _since(connection: sa.Connection, last_now: datetime) -> datetime:
    """Return when the last tick was that ended, or `last_now` if that was earlier.

    A tick that dies once it has looked leaves all that it found to the next one.
    """
    ended = ticks.newest_now(connection)
    return last_now if ended is None else min(last_now, ended)


def note(
    connection: sa.Connection, last_now: datetime | None, now: datetime, longest_gap: timedelta
) -> bool:
    """Return whether the last tick is more than `longest_gap` ago, and store the downtime if so.

    In the transaction that stores `now` as the last tick's: no daemon decides what was due
    meanwhile without its cause, and a killed one leaves it.
    """
    if last_now is None or now - last_now <= longest_gap:
        return False
    since = _since(connection, last_now)
    # Measured on the database's clock: `now` may be any instant (`--at`).
    recorded_from = read_clock(connection) - (now - since)
    instants = {"since": since, "until": now, "recorded_from": recorded_from}
    fact = json.dumps({key: at.isoformat() for key, at in instants.items()})
    key_values.set_value(connection, key_values.DOWNTIME, fact)
    return True


def report(engine: sa.Engine) -> dict[str, Any] | None:
    """Log the outcomes of the last downtime, and return them."""
    with reading(engine) as connection:
        last = last_downtime(connection)
    if last is not None:
        logger.warning("downtime", "down {what}", in_words(last))
    return last


def record_missed(connection: sa.Connection, rows: Rows, spans: Rows) -> int:
    """Record missed operations and spans, and find their causes; return how many are new."""
    if not rows and not spans:
        return 0
    last_at = max([*(row["occurrence_at"] for row in rows), *(one["last_at"] for one in spans)])
    causes = _Causes(connection, last_at.date())
    rows = [row | {"reason": causes.reason(row, "occurrence_at")} for row in rows]
    spans = [span | {"reason": causes.reason(span, "first_at", "last_at")} for span in spans]
    # Before what is counted for them. In one order, so that two daemons never deadlock.
    for down in sorted(causes.down, key=lambda one: one.about):
        # Again, if it has been told, or was ahead of a clock that was set back.
        findings.begin(connection, down, or_ahead=True)
    findings.note(connection, sorted(causes.found, key=lambda one: one.about))
    return record.record_missed(connection, rows, spans)


class _Causes:
    """Why occurrences up to some day were missed.

    What was overtaken without an outage has no cause to be told: `catch_up: latest` asks for the
    newest alone.
    """

    def __init__(self, connection: sa.Connection, last_day: date) -> None:
        self.outages = outages(connection, settings_in_use().scheduler.longest_gap)
        self.day = f" | {last_day}"
        self.found: set[Found] = set()
        # The outages among them.
        self.down: set[Found] = set()

    def reason(self, row: dict[str, Any], *ends: str) -> str:
        """Return the reason with its cause: the outage, if all was missed in it."""
        reason = str(row["reason"])
        is_overtaken = reason.startswith(OVERTAKEN)
        is_by_time = is_overtaken or reason.startswith(TOO_LATE)
        first_at, last_at = row[ends[0]], row[ends[-1]]
        outage = next((one for one in self.outages if one.covers(first_at, last_at)), None)
        if outage is not None and is_by_time:
            self.down.add(found(outage.begin, outage.text))
            is_one = len(ends) == 1
            return f"{reason}: {outage.text}" if is_overtaken and is_one else outage.text
        if not is_overtaken:
            self.found.add(found(reason, reason, self.day))
        return reason
