"""What the daemons and workers report of themselves, and what holds for the installation."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.sql import database_now, insert_ignoring, upsert
from models.tables import installation, ticks, workers

LAST_NOW = "last_tick_now"
CLOCK_SET_BACK = "clock_set_back"


def report(
    connection: sa.Connection,
    daemon: str,
    now: datetime,
    duration_ms: float,
    report: dict[str, Any],
) -> None:
    """Store one tick's report."""
    connection.execute(
        sa.insert(ticks).values(
            daemon=daemon,
            now=now,
            finished_at=database_now(),
            duration_ms=duration_ms,
            report=report,
        )
    )


def last(connection: sa.Connection) -> dict[str, Any] | None:
    """Return the newest tick's report, None before the first.

    The newest is the last one stored: after a clock that was ahead, older ones have later instants.
    """
    query = sa.select(ticks).order_by(ticks.c.id.desc()).limit(1)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else dict(row)


def has_ticked(connection: sa.Connection, daemon_prefix: str, within: timedelta) -> bool:
    """Whether a daemon of that name's beginning ended a tick within that span."""
    query = sa.select(sa.literal(1)).where(
        # An instant that lies ahead is of a clock that was: it says nothing of now.
        ticks.c.finished_at.between(database_now(-within), database_now(within)),
        ticks.c.daemon.startswith(daemon_prefix, autoescape=True),
    )
    return connection.execute(query.limit(1)).first() is not None


def clock_was_ahead(by: timedelta) -> sa.ColumnElement[bool]:
    """Whether a tick ended more than `by` after the database's clock as it is now."""
    ahead = sa.select(sa.literal(1)).where(ticks.c.finished_at > database_now(by))
    return ahead.limit(1).exists()


def fact(connection: sa.Connection, key: str) -> str | None:
    """Return what the installation knows under `key`."""
    query = sa.select(installation.c.value).where(installation.c.key == key)
    return connection.execute(query).scalar_one_or_none()


def set_fact(connection: sa.Connection, key: str, value: str) -> None:
    """Store a fact of the installation."""
    upsert(connection, installation, [{"key": key, "value": value}])


def worker_seen(connection: sa.Connection, name: str, queues: str, pid: int) -> None:
    """Note that a worker is alive and which queues it listens to."""
    values = {"queues": queues, "pid": pid, "seen_at": database_now(), "stopped_at": None}
    seen = sa.update(workers).where(workers.c.name == name).values(values)
    if connection.execute(seen).rowcount == 0:
        # Each process of a worker's pool says so: another may have been first.
        first = insert_ignoring(connection, workers)
        connection.execute(first.values(name=name, started_at=database_now(), **values))


def worker_stopped(connection: sa.Connection, name: str) -> None:
    """Note that a worker stopped of its own."""
    connection.execute(
        sa.update(workers).where(workers.c.name == name).values(stopped_at=database_now())
    )


def live_workers(connection: sa.Connection, within: timedelta) -> list[dict[str, Any]]:
    """Return the workers seen within that span that have not stopped, by name."""
    query = (
        sa.select(workers)
        .where(workers.c.seen_at.between(database_now(-within), database_now(within)))
        .where(workers.c.stopped_at.is_(None))
        .order_by(workers.c.name)
    )
    return [dict(row) for row in connection.execute(query).mappings()]
