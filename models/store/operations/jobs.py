"""Read the operations of jobs: those to hand out, and those that a worker holds."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.errors import LeaseLost, NotFound
from models.job import JOB, Job, id_of
from models.operation import OperationState
from models.sql import database_now, stands_in
from models.store.operations.outbox import LONG_AGO
from models.store.operations.running import lease_lost
from models.store.scope import Scope
from models.tables import JOB_TO_TAKE, action_cursor, operations, revisions

# By small app, None for all of them: the queues that workers ask for.
Asked = Mapping[int | None, Collection[str]]


@dataclass(frozen=True, slots=True)
class Offer:
    """An operation of a job that a worker may take."""

    id: UUID
    attempt: int
    small_app_id: int
    queue: str


@dataclass(frozen=True, slots=True)
class Held:
    """A job that a worker holds, and by whose clock its spans are measured."""

    id: UUID
    attempt: int
    action_uid: UUID
    plan: Plan
    job: Job
    failures: int
    losses: int
    step: dict[str, Any]
    ran_for: timedelta
    waited_for: timedelta
    # For how long a cancel has been requested, None if it has not.
    cancelled_for: timedelta | None


def offers(connection: sa.Connection, asked: Asked, limit: int) -> list[Offer]:
    """Return up to `limit` operations for those who ask, the first recorded first.

    A pending one counts as well: it was not sent while the broker was away, or its backoff ended.
    """
    is_due = operations.c.not_before <= database_now()
    is_asked_for = [
        operations.c.queue.in_(queues)
        & (sa.true() if app_id is None else operations.c.small_app_id == app_id)
        for app_id, queues in asked.items()
    ]
    # Always true: with it, both stores use the index of jobs.
    at_any_time = operations.c.recorded_at > database_now(-LONG_AGO)
    query = (
        sa.select(
            operations.c.id, operations.c.attempt, operations.c.small_app_id, operations.c.queue
        )
        .where(sa.text(JOB_TO_TAKE), at_any_time, sa.or_(*is_asked_for))
        .where(stands_in(operations.c.state, {OperationState.QUEUED}) | is_due)
        .order_by(operations.c.recorded_at)
        .limit(limit)
    )
    return [Offer(*row) for row in connection.execute(query)]


_HELD = (
    sa.select(
        operations.c.id,
        operations.c.attempt,
        operations.c.state,
        operations.c.action_uid,
        operations.c.failures,
        operations.c.losses,
        operations.c.steps,
        operations.c.recorded_at,
        operations.c.started_at,
        operations.c.cancel_requested_at,
        database_now().label("now"),
        revisions.c.plan,
    )
    .join(
        revisions,
        (revisions.c.action_uid == operations.c.action_uid)
        & (revisions.c.number == operations.c.revision),
    )
    .where(operations.c.task == JOB)
)


def held(
    connection: sa.Connection, operation_id: UUID, attempt: int, job_id: str, scope: Scope
) -> Held:
    """Return a job that a worker holds; raises NotFound, or LeaseLost if it holds it no more."""
    its = (operations.c.id == operation_id, scope.has(operations.c.small_app_id))
    row = connection.execute(_HELD.where(*its)).one_or_none()
    job = row.plan.job if row is not None and isinstance(row.plan, Plan) else None
    if row is None or job is None or id_of(job.url) != job_id:
        raise NotFound(f"no job {job_id} was handed out under that lease")
    if row.attempt != attempt or row.state != OperationState.RUNNING:
        raise _ended(operation_id, attempt, row.state)
    asked_at: datetime | None = row.cancel_requested_at
    return Held(
        row.id,
        row.attempt,
        row.action_uid,
        row.plan,
        job,
        row.failures,
        row.losses,
        dict(row.steps[0]) if row.steps else {"name": JOB},
        row.now - row.started_at,
        row.started_at - row.recorded_at,
        None if asked_at is None else row.now - asked_at,
    )


def _ended(operation_id: UUID, attempt: int, state: str) -> LeaseLost:
    text = f"{lease_lost(operation_id, attempt)}; it is {state} now, and nothing was changed"
    return LeaseLost(text)


def next_run(connection: sa.Connection, action_uid: UUID) -> datetime | None:
    """Return when an action is due next, None for never."""
    query = sa.select(action_cursor.c.next_occurrence_at)
    its = query.where(action_cursor.c.action_uid == action_uid)
    return connection.execute(its).scalar_one_or_none()


def next_try(connection: sa.Connection, operation_id: UUID) -> datetime | None:
    """Return when an operation is tried again, None if it has ended."""
    is_pending = stands_in(operations.c.state, {OperationState.PENDING})
    query = sa.select(operations.c.not_before).where(operations.c.id == operation_id, is_pending)
    return connection.execute(query).scalar_one_or_none()
