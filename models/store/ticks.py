"""Store tick reports, and the `now` of the last tick."""

import json
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.sql import database_now, read_clock
from models.store.key_values import (
    LAST_NOW,
    STOPPED,
    hold_value,
    set_value,
    value_query,
)
from models.stored import document_in, instant_in
from models.tables import (
    ticks,
)

# How far what our clock wrote may lie ahead of it: two daemons are less apart.
CLOCK_WAS_WRONG = timedelta(minutes=5)

_REPORT = sa.insert(ticks).values(finished_at=database_now())


def report(
    connection: sa.Connection,
    daemon: str,
    now: datetime,
    duration_ms: float,
    report: dict[str, Any],
) -> None:
    """Store one tick's report."""
    row = {"daemon": daemon, "now": now, "duration_ms": duration_ms, "report": report}
    connection.execute(_REPORT, row)


def hold_last_now(connection: sa.Connection) -> datetime | None:
    """Return the last tick's `now`; until this transaction ends, no other tick changes it."""
    return instant_in(hold_value(connection, LAST_NOW))


def clock_went_back(connection: sa.Connection, now: datetime, by: timedelta) -> bool:
    """Return whether the last tick's `now` lies more than `by` before this one.

    Until this transaction ends, no other tick sets the clock right. Ticks without a jump go on.
    """
    last_now = instant_in(hold_value(connection, LAST_NOW, read=True, key_share=True))
    return last_now is not None and last_now < now - by


def newest_now(connection: sa.Connection) -> datetime | None:
    """Return the `now` of the last tick that ended, None before the first."""
    newest = sa.select(ticks.c.now).order_by(ticks.c.id.desc()).limit(1)
    return connection.execute(newest).scalar()


def last(connection: sa.Connection) -> dict[str, Any] | None:
    """Return the last stored tick report, None before the first.

    After a clock was ahead, older reports have later instants. `stopped_at` is when its daemon
    stopped cleanly; None if the last clean stop was another's, or none.
    """
    stop = value_query(STOPPED).scalar_subquery()
    query = sa.select(ticks, stop.label("stop")).order_by(ticks.c.id.desc()).limit(1)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return None
    report: dict[str, Any] = row["report"]
    skew_s = report.get("clock_skew_s")
    if not isinstance(skew_s, int | float):
        report = {key: value for key, value in report.items() if key != "clock_skew_s"}
    said = document_in(row["stop"] or "")
    stopped_at = instant_in(said.get("at")) if said.get("daemon") == row["daemon"] else None
    return {**row, "report": report, "stopped_at": stopped_at}


def daemon_stopped(connection: sa.Connection, daemon: str) -> None:
    """Record that a daemon stopped cleanly, now."""
    at = read_clock(connection)
    set_value(connection, STOPPED, json.dumps({"daemon": daemon, "at": at.isoformat()}))


def has_ticked(connection: sa.Connection, daemon_prefix: str, within: timedelta) -> bool:
    """Return whether a daemon with that name prefix ended a tick within that span."""
    query = sa.select(sa.literal(1)).where(
        # An instant in the future comes from a clock that was ahead: ignore it.
        ticks.c.finished_at.between(database_now(-within), database_now(within)),
        ticks.c.daemon.startswith(daemon_prefix, autoescape=True),
    )
    return connection.execute(query.limit(1)).first() is not None
