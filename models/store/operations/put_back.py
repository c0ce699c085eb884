"""Put operations back: after a failure or a loss, by the sweep, or because a person asks."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from minutebook import lease
from models.action.plan import Plan, readable
from models.column_types import shown
from models.job import JOB
from models.notices import TIME_BOX
from models.operation import ENDED, MOST_LOSSES, AttemptKey, OperationState, StepState
from models.sql import database_now, in_many, in_unindexed
from models.store import notices, workers
from models.store.conditions import IS_RUNNING, IS_UNSTARTED
from models.store.operations import RESERVED_FOR
from models.store.operations.end import PLAN, Outcome, end, end_at_least, release_waiting
from models.store.operations.heartbeat import void
from models.store.operations.reserve import MESSAGE, Message
from models.store.operations.transitions import RUNNING, archive_last, move
from models.tables import operations
from models.worker_kinds import CELERY, OURS, worker_kind_of
from runtime.database import is_of_no_row
from runtime.sections import AlertSettings

CANCELLED = Outcome(OperationState.CANCELLED, reason="cancelled")
TIME_LIMIT = Outcome(
    OperationState.FAILED, error="time limit", reason="time limit", is_failure=True
)
# How an attempt ends that is cut off, by why it should have stopped.
CUT_OFF = {lease.CANCELLED: CANCELLED, lease.TIME_LIMIT: TIME_LIMIT}
# A stop in time: the next operation goes on from the checkpoint.
STOPPED_IN_TIME = Outcome(OperationState.PARTIAL, reason=TIME_BOX)


def lost(losses: int, why: str, step: str | None, may_repeat: bool, is_asked: bool) -> Outcome:
    """Return how an attempt ends whose worker was lost while a step ran.

    A cancel that was asked for takes effect; a step that may not repeat fails the operation; else
    it is tried again, up to three times: `losses` counts earlier ones.
    """
    state, error = OperationState.PENDING, f"lost: {why}"
    if is_asked:
        state = OperationState.CANCELLED
    elif not may_repeat or losses >= MOST_LOSSES:
        state = OperationState.FAILED
    if state is OperationState.FAILED and step is not None:
        error += f"; step {step} was running"
    return Outcome(state, error=error, reason="lost", is_loss=True)


def lost_task(ending: Outcome, plan: Plan, failures: int) -> Outcome:
    """Return how a lost attempt of the user's own task ends, which may not begin again by itself.

    Where `lost` would fail it, its policy of retries decides.
    """
    if ending.state is not OperationState.FAILED:
        return ending
    again = failed(plan, failures, ending.error or "")
    return ending if again.state is OperationState.FAILED else again


def failed(plan: Plan, failures: int, error: str, *, permanent: bool = False) -> Outcome:
    """Return how an attempt ends that failed after others: retried after its backoff, or for good.

    `failures` counts earlier ones.
    """
    retry, error = plan.policy.retry, shown(error)
    if permanent or failures + 1 >= retry.max_attempts:
        return Outcome(OperationState.FAILED, error=error, is_failure=True)
    delay = retry.backoff[min(failures, len(retry.backoff) - 1)]
    return Outcome(
        OperationState.PENDING,
        error=error,
        reason="retry",
        delay=delay,
        is_failure=True,
    )


_holder = operations.alias("holder")
# What operations wait for that has ended or is missing.
STRANDED = (
    sa.select(operations.c.waiting_for)
    .outerjoin(_holder, _holder.c.id == operations.c.waiting_for)
    .where(operations.c.waiting_for.is_not(None), IS_UNSTARTED)
    .where(_holder.c.id.is_(None) | _holder.c.state.in_(ENDED))
)


def release_stranded(connection: sa.Connection) -> int:
    """Release operations that wait for an ended or missing one; return how many."""
    ended = connection.execute(STRANDED.distinct()).scalars().all()
    return sum(len(release_waiting(connection, one)) for one in ended)


def take_back_lost(
    connection: sa.Connection,
    lease: timedelta,
    limit: int,
    alerts: AlertSettings,
) -> list[tuple[UUID, str]]:
    """Take back running operations without a heartbeat for `lease`; return id and new state.

    Those of workers outside are left alone while no web process lives, and for a lease after that.
    """
    # A heartbeat in the future comes from a clock that was ahead.
    stale = (operations.c.heartbeat_at < database_now(-lease)) | (
        operations.c.heartbeat_at > database_now(lease)
    )
    # Workers that never send a heartbeat have until their job's time limit.
    is_quiet = (operations.c.heartbeat_at == operations.c.started_at) & (
        operations.c.not_before > database_now()
    )
    is_lost = sa.not_(is_quiet & (operations.c.task == JOB))
    if not workers.web_lives(connection, lease):
        is_lost = operations.c.task.in_(sorted(OURS.tasks))
    lost = (
        connection.execute(
            sa.select(operations, PLAN)
            .where(IS_RUNNING, stale, is_lost)
            .where(operations.c.heartbeat_at.is_not(None))
            .order_by(operations.c.heartbeat_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        .mappings()
        .all()
    )
    return [(row["id"], _taken_back(connection, row, alerts)) for row in lost]


def _taken_back(
    connection: sa.Connection, row: sa.RowMapping, alerts: AlertSettings
) -> OperationState:
    """Take back an operation; if that fails, end it as broken, and let the others go on."""
    try:
        with connection.begin_nested():
            return _take_back(connection, row, alerts)
    except Exception as error:  # a broken row
        if is_of_no_row(error):
            raise
        text = f"it could not be taken back: {type(error).__name__}: {error}"
    broken = Outcome(OperationState.FAILED, error=text, reason="broken")
    end_at_least(connection, row["id"], broken, lambda: _end(connection, row, broken, alerts))
    return broken.state


def _end(
    connection: sa.Connection, row: sa.RowMapping, ending: Outcome, alerts: AlertSettings
) -> None:
    key = void(connection, AttemptKey(row["id"], row["attempt"], row["secret"] or ""))
    ended = end(connection, key, ending, alerts=alerts)
    notices.send_soon(connection, ended.owed)


def _take_back(
    connection: sa.Connection, row: sa.RowMapping, alerts: AlertSettings
) -> OperationState:
    running = (one for one in row["steps"] or [] if one.get("state") == StepState.RUNNING)
    step: dict[str, Any] = next(running, {})
    why, is_asked = f"worker {row['worker']} sent no heartbeat", bool(row["cancel_requested_at"])
    ending = lost(row["losses"], why, step.get("name"), step.get("repeatable", True), is_asked)
    if worker_kind_of(row["task"]) is CELERY:
        ending = lost_task(ending, readable(row["plan"]), row["failures"])
    _end(connection, row, ending, alerts)
    return ending.state


# Columns without a value before the start.
_NOTHING = (
    "reason", "error", "result", "finished_at", "cancel_requested_at", "sent_at", "started_at",
    "phase", "message", "progress", "processed", "total",
)  # fmt: skip
_ANEW = {**dict.fromkeys(_NOTHING), "failures": 0, "losses": 0}


def requeue(
    connection: sa.Connection,
    seen: Sequence[Mapping[str, Any]],
    states: Collection[OperationState],
    becomes: Mapping[str, Any],
) -> list[Message]:
    """Make ended operations pending, reserved for sending by the caller; those that moved are not.

    `seen` are their rows, `states` the states allowed, `becomes` the new values of each. It gets a
    new attempt, unless it never had its first: it did not start, nor was it handed over.
    """
    began = (operations.c.first_started_at, operations.c.send_started_at)
    has_begun = sa.or_(*(one.is_not(None) for one in began))
    values = {
        **_ANEW,
        **becomes,
        "attempt": sa.case((has_begun, operations.c.attempt + 1), else_=operations.c.attempt),
        "not_before": database_now(RESERVED_FOR),
    }
    those = sa.and_(
        in_many(connection, operations.c.id, [one["id"] for one in seen]),
        operations.c.attempt.in_({one["attempt"] for one in seen}),
    )
    archive_last(connection, those)
    again = move(OperationState.PENDING, those, since=states, **values)
    return [Message(*row) for row in connection.execute(again.returning(*MESSAGE))]


def ask_to_cancel(connection: sa.Connection, operation_id: UUID, reason: str) -> bool:
    """Ask an operation to end at its next heartbeat; False if not running or asked before."""
    asked = (
        sa.update(operations)
        .where(operations.c.id == operation_id, in_unindexed(operations.c.state, RUNNING))
        .where(operations.c.cancel_requested_at.is_(None))
        .values(cancel_requested_at=database_now(), reason=reason)
    )
    return connection.execute(asked).rowcount == 1
