"""Write to a running operation, fenced by its attempt's key; no row changed means LeaseLost."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import DatabaseWentBack, LeaseLost
from models.operation import UNSTARTED, AttemptKey, OperationState
from models.sql import database_now, in_unindexed, read_clock, upsert
from models.store import key_values
from models.store.conditions import IS_RUNNING, IS_UNSTARTED, LIES_AHEAD, state_of
from models.store.operations.transitions import WENT_BACK
from models.tables import action_state, operation_logs, operations

MOST_LOG_LINES = 200


@dataclass(frozen=True, slots=True)
class RunHistory:
    """What is known of an action's (and subject's) earlier operations."""

    run_number: int
    last_success_at: datetime | None
    checkpoint: dict[str, Any]


_MEMORY = sa.select(
    action_state.c.run_number, action_state.c.last_success_at, action_state.c.checkpoint
).where(
    action_state.c.action_uid == sa.bindparam("its_action"),
    action_state.c.subject == sa.bindparam("its_subject"),
)


def memory(connection: sa.Connection, uid: UUID, subject: str | None) -> RunHistory:
    """Return an action's memory, empty before its first operation."""
    asked = {"its_action": uid, "its_subject": subject or ""}
    row = connection.execute(_MEMORY, asked).one_or_none()
    if row is None:
        return RunHistory(0, None, {})
    return RunHistory(row.run_number, row.last_success_at, dict(row.checkpoint or {}))


# How many of an action's newest operations that started are read, beside its state.
RECENT = 20


def last_starts(connection: sa.Connection, uid: UUID, id: UUID) -> list[datetime | None]:
    """Return starts of an action's operations but `id`, among them the last one.

    What has ended is in the action's state, unless that is of a clock that was ahead.
    """
    started = sa.select(operations.c.first_started_at).where(
        operations.c.action_uid == uid,
        operations.c.id != id,
        operations.c.first_started_at.is_not(None),
        sa.not_(LIES_AHEAD),
    )
    queries = (
        sa.select(action_state.c.last_run_at).where(state_of(uid)),
        started.order_by(operations.c.occurrence_at.desc()).limit(RECENT),
        # What was asked for may be of an occurrence long ago.
        started.where(IS_RUNNING),
        started.where(IS_UNSTARTED),
    )
    return [at for query in queries for at in connection.execute(query).scalars()]


# The row of an attempt, and of a running one; `fence` returns their parameters.
ATTEMPT = sa.and_(
    operations.c.id == sa.bindparam("its_id"),
    operations.c.attempt == sa.bindparam("its_attempt"),
    sa.func.coalesce(operations.c.secret, "") == sa.bindparam("its_secret"),
)
IS_STILL_RUNNING = in_unindexed(operations.c.state, {OperationState.RUNNING})
_FENCED = sa.and_(ATTEMPT, IS_STILL_RUNNING)
_BEAT = (
    sa.update(operations)
    .where(_FENCED)
    .values(heartbeat_at=database_now())
    .returning(operations.c.cancel_requested_at)
)


def fence(key: AttemptKey) -> dict[str, Any]:
    """Return the parameters that fence a statement by an attempt's key."""
    return {"its_id": key.id, "its_attempt": key.attempt, "its_secret": key.secret}


def void(connection: sa.Connection, key: AttemptKey) -> AttemptKey:
    """Remove the secret of an attempt that somebody else ends than its worker; return its new key.

    What its worker reports later is then no repeated end, but a lost lease.
    """
    connection.execute(sa.update(operations).where(_FENCED).values(secret=None), fence(key))
    return AttemptKey(key.id, key.attempt)


def lease_lost(connection: sa.Connection, key: AttemptKey) -> LeaseLost:
    """Return the error of a worker's write that changed no row.

    It is DatabaseWentBack if the row lacks the claim; the caller then writes `note_went_back`, in a
    transaction of its own.
    """
    its = operations.c
    columns = (its.state, its.attempt, its.secret, its.worker)
    its_row = sa.select(*columns).where(operations.c.id == key.id)
    how = _went_back(connection.execute(its_row).one_or_none(), key)
    if how is not None and key.secret:
        return DatabaseWentBack(key.id, key.attempt, how)
    return LeaseLost(f"{key.words} has moved meanwhile")


def _went_back(row: Any, key: AttemptKey) -> str | None:
    """Return how a row lacks a claim that was committed; None if it has it, or a later one."""
    if row is None:
        return "is not recorded any more"
    if row.attempt > key.attempt:
        return None
    if row.attempt < key.attempt or row.state in UNSTARTED:
        return f"lacks attempt {key.attempt}, which had begun"
    # Without a secret, it was taken from its worker: `void`.
    is_void = row.secret is None and row.worker is not None
    return (
        None
        if is_void or row.secret == key.secret
        else f"had its attempt {key.attempt} claimed again"
    )


def note_went_back(connection: sa.Connection, error: DatabaseWentBack) -> None:
    """Write that an attempt lacked its claim: a fact for the verdict, and the row's reason.

    What has begun is not overtaken.
    """
    began = sa.func.coalesce(operations.c.first_started_at, database_now())
    its_row = sa.update(operations).where(operations.c.id == error.operation_id)
    reason = f"{WENT_BACK}: attempt {error.attempt} had begun"
    connection.execute(its_row.values(reason=reason, first_started_at=began))
    at = read_clock(connection).isoformat()
    its = {"operation": str(error.operation_id), "attempt": error.attempt, "how": error.how}
    key_values.set_value(connection, key_values.WENT_BACK, json.dumps({"at": at, **its}))


@dataclass(frozen=True, slots=True)
class ProgressUpdate:
    """An attempt's progress to store: columns, and log lines if there are new ones."""

    values: Mapping[str, Any]
    lines: Sequence[dict[str, Any]] | None = None


NO_NEWS = ProgressUpdate({})


def beat(connection: sa.Connection, key: AttemptKey, story: ProgressUpdate = NO_NEWS) -> bool:
    """Renew the lease, and write progress, phase, message or steps, and the last log lines.

    Returns whether a cancel was requested. Raises LeaseLost.
    """
    row = connection.execute(_BEAT, {**fence(key), **story.values}).one_or_none()
    if row is None:
        raise lease_lost(connection, key)
    write_lines(connection, key.id, story)
    return row.cancel_requested_at is not None


def write_lines(connection: sa.Connection, operation_id: UUID, story: ProgressUpdate) -> None:
    """Write the last log lines, if any."""
    if story.lines is not None:
        lines = list(story.lines)[-MOST_LOG_LINES:]
        upsert(connection, operation_logs, [{"operation_id": operation_id, "lines": lines}])
