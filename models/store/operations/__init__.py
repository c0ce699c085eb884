"""Operations: record them once, overtake them, look at them."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import NotFound
from models.operation import ASKED_FOR, UNSTARTED, OperationState
from models.sql import (
    Change,
    Columns,
    database_now,
    insert_all,
    is_among,
    stands_in,
    update_each,
)
from models.tables import actions, attempts, missed_spans, operation_logs, operations
from runtime.database import default_engine, is_made, reading

# How long the process that records or reserves an operation has to send it.
RESERVED_FOR = timedelta(seconds=30)
UNKNOWN = "unknown"
# What the triggerer of an operation that a schedule recorded begins with.
SCHEDULED = "Scheduled action"
# Why one was skipped that never started: a newer one took its place.
OVERTAKEN = "overtaken"
MORE_WAITED = "overlap: more than "


def record(connection: sa.Connection, rows: Sequence[dict[str, Any]]) -> set[UUID]:
    """Record operations, reserved for sending by the caller; return the ids that are new.

    A row whose id is there already, in whatever state, is left alone.
    """
    if not rows:
        return set()
    reserved = {"recorded_at": database_now(), "not_before": database_now(RESERVED_FOR)}
    return set(insert_all(connection, operations, rows, reserved))


def recorded_among(connection: sa.Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of `ids` that an operation has, in whatever state."""
    known = sa.select(operations.c.id).where(is_among(connection, operations.c.id, ids))
    return set(connection.execute(known).scalars())


def record_missed(
    connection: sa.Connection, rows: Sequence[dict[str, Any]], spans: Sequence[dict[str, Any]]
) -> int:
    """Record missed occurrences, one by one and as spans; return how many occurrences are new."""
    count = 0
    if rows:
        ended = {name: database_now() for name in ("recorded_at", "not_before", "finished_at")}
        count = len(insert_all(connection, operations, rows, ended))
    if spans:
        statement = sa.insert(missed_spans).values(recorded_at=database_now())
        connection.execute(statement, list(spans))
        count += sum(span["count"] for span in spans)
    return count


def asked_for(triggerer: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Return the condition that a rerun, a retry or a backfill caused an operation."""
    return sa.or_(*(triggerer.startswith(prefix) for prefix in ASKED_FOR))


def is_being_sent(row: Columns) -> sa.ColumnElement[bool]:
    """Return the condition that the user's own application may just now get an operation's message.

    Nobody may say of it that it did not run until it is known who has it.
    """
    is_pending = stands_in(row["state"], {OperationState.PENDING})
    return sa.and_(is_pending, row["handing_at"].is_not(None))


def recorded_in(
    connection: sa.Connection, spans: Sequence[dict[str, Any]]
) -> list[dict[UUID, datetime]]:
    """Return of each span the operations whose occurrence lies in it, by id.

    There are some only after a clock that went back, or a backfill before the tick.
    """
    if not spans:
        return []
    columns = (operations.c.action_uid, operations.c.occurrence_at, operations.c.id)
    recorded = connection.execute(
        sa.select(*columns).where(
            operations.c.action_uid.in_([span["action_uid"] for span in spans]),
            operations.c.occurrence_at >= min(span["first_at"] for span in spans),
            operations.c.occurrence_at <= max(span["last_at"] for span in spans),
        )
    ).all()
    return [
        {
            id: at
            for uid, at, id in recorded
            if uid == span["action_uid"] and span["first_at"] <= at <= span["last_at"]
        }
        for span in spans
    ]


def overtake(connection: sa.Connection, newest: Sequence[tuple[UUID, datetime]]) -> int:
    """Skip the unstarted operations before an action's newest: pairs of uid and occurrence.

    Those that somebody asked for wait for their turn.
    """
    rows = [{"its_action": uid, "its_newest": at} for uid, at in newest]

    def is_overtaken(row: Columns, given: Columns) -> list[sa.ColumnElement[bool]]:
        return [
            row["action_uid"] == given["its_action"],
            row["occurrence_at"] < given["its_newest"],
            stands_in(row["state"], UNSTARTED),
            # One that has begun (a retry, one given back) is not taken over by another occurrence.
            row["first_started_at"].is_(None),
            sa.not_(asked_for(row["triggerer"])),
            sa.not_(is_being_sent(row)),
        ]

    values = {
        "state": OperationState.SKIPPED,
        "reason": OVERTAKEN,
        "waiting_for": None,
        "finished_at": database_now(),
    }
    names = {"its_action": "action_uid", "its_newest": "occurrence_at"}
    return update_each(connection, operations, rows, names, Change(is_overtaken, lambda _: values))


def keep_newest(connection: sa.Connection, uid: UUID, max_waiting: int) -> int:
    """Skip the oldest operations of an action that never started, beyond those that may wait.

    One is allowed besides those that wait: it may be the next to run. Those that somebody asked for
    do not count.
    """
    never_started = (
        sa.select(operations.c.id)
        .where(operations.c.action_uid == uid, stands_in(operations.c.state, UNSTARTED))
        .where(operations.c.first_started_at.is_(None))
        .where(sa.not_(asked_for(operations.c.triggerer)))
        .where(sa.not_(is_being_sent(operations.c)))
        .order_by(operations.c.occurrence_at.desc())
        .offset(max_waiting + 1)
    )
    too_many = connection.execute(never_started).scalars().all()
    if not too_many:
        return 0
    skipped = (
        sa.update(operations)
        .where(operations.c.id.in_(too_many), stands_in(operations.c.state, UNSTARTED))
        .where(sa.not_(is_being_sent(operations.c)))
        .values(
            state=OperationState.SKIPPED,
            reason=f"{MORE_WAITED}{max_waiting} waited",
            waiting_for=None,
            finished_at=database_now(),
        )
    )
    return connection.execute(skipped).rowcount


def cancel_unstarted(connection: sa.Connection, uids: Sequence[UUID], reason: str) -> int:
    """Cancel the unstarted operations of actions; return how many."""
    its_action = is_among(connection, operations.c.action_uid, uids)
    cancelled = (
        sa.update(operations)
        .where(its_action, stands_in(operations.c.state, UNSTARTED))
        .where(sa.not_(is_being_sent(operations.c)))
        .values(
            state=OperationState.CANCELLED,
            reason=reason,
            waiting_for=None,
            finished_at=database_now(),
        )
    )
    return connection.execute(cancelled).rowcount


def active_operations(connection: sa.Connection, uid: UUID) -> list[dict[str, Any]]:
    """Return id and state of an action's operations that are unstarted or running."""
    active = {*UNSTARTED, OperationState.RUNNING}
    query = sa.select(operations.c.id, operations.c.state).where(
        operations.c.action_uid == uid, operations.c.state.in_(active)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def get_operation_state(
    operation_id: UUID | str, connection: sa.Connection | None = None
) -> OperationState | str:
    """Return the state of an operation, or `unknown` when none has that id.

    Asks the database only: the broker may be off. Without `connection` the database of this
    process's settings is asked; where an embedded one was never made, no operation is known.
    """
    try:
        wanted = operation_id if isinstance(operation_id, UUID) else UUID(str(operation_id))
    except ValueError:
        return UNKNOWN
    query = sa.select(operations.c.state).where(operations.c.id == wanted)
    if connection is not None:
        state = connection.execute(query).scalar_one_or_none()
    elif is_made(engine := default_engine()):
        with reading(engine) as opened:
            state = opened.execute(query).scalar_one_or_none()
    else:
        state = None
    return UNKNOWN if state is None else OperationState(state)


def get(connection: sa.Connection, operation_id: UUID) -> dict[str, Any]:
    """Return an operation with its action's name; raises NotFound."""
    row = connection.execute(
        _with_action_name().where(operations.c.id == operation_id)
    ).one_or_none()
    if row is None:
        raise NotFound(f"no operation has the id {operation_id}; see `minutehand operation list`")
    return dict(row._mapping)


def recent(
    connection: sa.Connection,
    limit: int,
    *,
    small_app_id: int | None = None,
    uid: UUID | None = None,
    states: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return the newest operations first, of one small app or action, in some states or all."""
    query = _with_action_name().order_by(operations.c.occurrence_at.desc(), operations.c.id)
    if small_app_id is not None:
        query = query.where(operations.c.small_app_id == small_app_id)
    if uid is not None:
        query = query.where(operations.c.action_uid == uid)
    if states:
        query = query.where(operations.c.state.in_(states))
    return [dict(row._mapping) for row in connection.execute(query.limit(limit))]


def attempts_of(connection: sa.Connection, operation_id: UUID) -> list[dict[str, Any]]:
    """Return an operation's attempts, oldest first."""
    query = sa.select(attempts).where(attempts.c.operation_id == operation_id)
    return [dict(row._mapping) for row in connection.execute(query.order_by(attempts.c.attempt))]


def log_lines(connection: sa.Connection, operation_id: UUID) -> list[dict[str, Any]]:
    """Return an operation's last log lines, oldest first; empty when it has none."""
    query = sa.select(operation_logs.c.lines).where(operation_logs.c.operation_id == operation_id)
    return connection.execute(query).scalar_one_or_none() or []


def counts_by_state(connection: sa.Connection, since: datetime) -> dict[str, int]:
    """Return how many operations recorded since then stand in each state."""
    query = (
        sa.select(operations.c.state, sa.func.count())
        .where(operations.c.recorded_at >= since)
        .group_by(operations.c.state)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def _with_action_name() -> sa.Select[Any]:
    return sa.select(operations, actions.c.name.label("action_name")).join(
        actions, actions.c.uid == operations.c.action_uid
    )
