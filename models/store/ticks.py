"""Store tick reports, and look whether a tick has work."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.column_types import UTCDateTime
from models.sql import database_now, read_clock
from models.store.conditions import (
    IS_ACTIVE_BACKFILL,
    IS_OWED,
    IS_RUNNING,
    IS_UNSTARTED,
    NEVER_STARTED,
)
from models.store.facts import (
    KERNEL,
    LAST_NOW,
    STOPPED,
    TZ_RELEASE,
    WINDING_BACK,
    fact_query,
    hold_fact,
    set_fact,
)
from models.stored import document_in, instant_in
from models.tables import (
    SENDABLE,
    action_cursor,
    actions,
    backfills,
    notices,
    operations,
    ticks,
)

# How far the last tick's `now` may lie from the clock before the clock was wrong.
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


@dataclass(frozen=True, slots=True)
class Found:
    """A tick's `now`, the last one's, and its work; `has_events` if event actions exist."""

    now: datetime
    last_now: datetime | None
    # Cursors may lie ahead of a clock that was set back.
    has_to_wind_back: bool
    has_due: bool
    has_to_sweep: bool
    has_events: bool
    # The stored kernel and tz release.
    release: tuple[str | None, str | None]


def _looking() -> sa.Select[Any]:
    """Return the one query of an idle tick.

    It reads only the ends of indexes.
    """
    sendable = sa.text(SENDABLE)
    not_before, beat = operations.c.not_before, operations.c.heartbeat_at
    beating = IS_RUNNING & beat.is_not(None)
    first_due = sa.select(sa.func.min(action_cursor.c.next_occurrence_at)).scalar_subquery()
    an_event_action = sa.select(sa.func.min(actions.c.small_app_id)).where(
        actions.c.event.is_not(None)
    )
    first_sendable = sa.select(sa.func.min(not_before)).where(sendable).scalar_subquery()
    first_beat = sa.select(sa.func.min(beat)).where(beating).scalar_subquery()
    last_beat = sa.select(sa.func.max(beat)).where(beating).scalar_subquery()
    first_owed = sa.select(sa.func.min(notices.c.not_before)).where(IS_OWED).scalar_subquery()
    never_started = sa.select(sa.func.min(operations.c.recorded_at)).where(NEVER_STARTED)
    first_overdue = never_started.scalar_subquery()
    waiting = sa.select(operations.c.waiting_for).where(
        operations.c.waiting_for.is_not(None), IS_UNSTARTED
    )
    first_backfill = (
        sa.select(sa.func.min(backfills.c.not_before)).where(IS_ACTIVE_BACKFILL).scalar_subquery()
    )
    lease_s = sa.bindparam("lease_s", type_=sa.Float)
    at = sa.bindparam("at", type_=UTCDateTime())
    now = sa.func.coalesce(at, database_now(), type_=UTCDateTime())
    return sa.select(
        now,
        fact_query(LAST_NOW).scalar_subquery(),
        fact_query(WINDING_BACK).exists(),
        fact_query(KERNEL).scalar_subquery(),
        fact_query(TZ_RELEASE).scalar_subquery(),
        first_due <= now,
        an_event_action.scalar_subquery(),
        first_sendable <= database_now(),
        first_beat < database_now(-lease_s),
        last_beat > database_now(lease_s),
        waiting.exists(),
        first_backfill <= database_now(),
        first_owed <= database_now(),
        first_overdue < database_now(sa.bindparam("late_s", type_=sa.Float)),
    )


_LOOK = _looking()


def look(
    connection: sa.Connection, at: datetime | None, lease: timedelta, overdue: timedelta
) -> Found:
    """Return the work of a tick, by one statement; `now` is `at`, or the database's clock.

    The sweep has work if anything is sendable, waiting, silent for `lease`, or unstarted for
    `overdue`.
    """
    asked = {"at": at, "lease_s": lease.total_seconds(), "late_s": -overdue.total_seconds()}
    now, last, winding, *rest = connection.execute(_LOOK, asked).one()
    kernel, tz, due, event_app, *to_sweep = rest
    last_now, has_events = instant_in(last), event_app is not None
    return Found(now, last_now, bool(winding), bool(due), any(to_sweep), has_events, (kernel, tz))


def hold_last_now(connection: sa.Connection) -> datetime | None:
    """Return the last tick's `now`; until this transaction ends, no other tick changes it."""
    return instant_in(hold_fact(connection, LAST_NOW))


def clock_went_back(connection: sa.Connection, now: datetime, by: timedelta) -> bool:
    """Return whether the last tick's `now` lies more than `by` before this one.

    Until this transaction ends, no other tick sets the clock right. Ticks without a jump go on.
    """
    last_now = instant_in(hold_fact(connection, LAST_NOW, read=True, key_share=True))
    return last_now is not None and last_now < now - by


def last(connection: sa.Connection) -> dict[str, Any] | None:
    """Return the last stored tick report, None before the first.

    After a clock was ahead, older reports have later instants. `stopped_at` is when its daemon
    stopped cleanly; None if the last clean stop was another's, or none.
    """
    stop = fact_query(STOPPED).scalar_subquery()
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
    set_fact(connection, STOPPED, json.dumps({"daemon": daemon, "at": at.isoformat()}))


def has_ticked(connection: sa.Connection, daemon_prefix: str, within: timedelta) -> bool:
    """Return whether a daemon with that name prefix ended a tick within that span."""
    query = sa.select(sa.literal(1)).where(
        # An instant in the future comes from a clock that was ahead: ignore it.
        ticks.c.finished_at.between(database_now(-within), database_now(within)),
        ticks.c.daemon.startswith(daemon_prefix, autoescape=True),
    )
    return connection.execute(query.limit(1)).first() is not None


def clock_was_ahead(by: timedelta) -> sa.ColumnElement[bool]:
    """Return the condition that a tick ended more than `by` after the database's clock now."""
    ahead = sa.select(sa.literal(1)).where(ticks.c.finished_at > database_now(by))
    return ahead.limit(1).exists()
