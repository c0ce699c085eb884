"""Read the operations of jobs: those to hand out, and those that a worker holds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import NotFound, Refused
from models.job import JOB
from models.operation import AttemptKey, OperationState
from models.sql import database_now, dicts, in_literals, in_unindexed
from models.store.conditions import IS_RUNNING
from models.store.operations.start_checks import OperationFacts
from models.store.pauses import is_paused
from models.store.scope import Scope
from models.store.tenants.closing import closing_rows, next_open
from models.tables import JOB_TO_TAKE, action_cursor, actions, operations, small_apps

# A small app, None for any, and a queue.
Lane = tuple[int | None, str]


@dataclass(frozen=True, slots=True)
class Offer:
    """An operation of a job that a worker may take."""

    id: UUID
    attempt: int
    recorded_at: datetime


def offers(
    connection: sa.Connection, asked: Mapping[Lane, int]
) -> dict[tuple[int, str], list[Offer]]:
    """Return operations for waiting workers, by small app and queue, the oldest first.

    `asked` has the number of workers that wait for each lane. The app whose first operation was
    recorded first comes first. A pending operation counts as well: it was
    not sent while the broker was unavailable, or its backoff ended.
    """
    lanes: Counter[tuple[int, str]] = Counter()
    for (app, queue), count in asked.items():
        its = {"queue": queue, "most": count}
        apps = connection.execute(_APPS, its).scalars().all() if app is None else [app]
        lanes.update({(one, queue): count for one in apps})
    found = {}
    for (app, queue), count in lanes.items():
        rows = connection.execute(_OFFERS, {"app": app, "queue": queue, "most": count}).all()
        if rows:
            found[app, queue] = [Offer(*row) for row in rows]
    return dict(sorted(found.items(), key=lambda item: item[1][0].recorded_at))


_QUEUE = sa.bindparam("queue", type_=operations.c.queue.type)
_MOST = sa.bindparam("most", type_=sa.Integer)


def _is_to_take(app: sa.ColumnElement[int]) -> tuple[Any, ...]:
    is_due = operations.c.not_before <= database_now()
    # Asked once for a lane, not for each of its jobs.
    lane: Any = {"small_app_id": app, "queue": _QUEUE, "task": sa.literal(JOB)}
    return (
        sa.text(JOB_TO_TAKE),
        operations.c.small_app_id == app,
        operations.c.queue == _QUEUE,
        sa.not_(is_paused(lane)),
        in_literals(operations.c.state, {OperationState.QUEUED}) | is_due,
    )


# Not an `exists`: PostgreSQL would join that with all jobs that wait.
_FIRST = (
    sa.select(sa.func.min(operations.c.recorded_at))
    .where(*_is_to_take(small_apps.c.id))
    .correlate_except(operations)
    .scalar_subquery()
)
# As many apps as workers wait: the oldest jobs are theirs.
_APPS = sa.select(small_apps.c.id).where(_FIRST.is_not(None)).order_by(_FIRST).limit(_MOST)
_OFFERS = (
    sa.select(operations.c.id, operations.c.attempt, operations.c.recorded_at)
    .where(*_is_to_take(sa.bindparam("app", type_=sa.Integer)))
    .order_by(operations.c.recorded_at)
    .limit(_MOST)
)


def spare_until_first_beat(
    connection: sa.Connection, started: Iterable[OperationFacts], lease: timedelta
) -> None:
    """Let jobs that have just started last until their time limits, or longer leases.

    Workers of older schedulers never send a heartbeat: a first one makes the lease count.
    """
    by_span = defaultdict(list)
    for one in started:
        by_span[max(lease, one.plan.time_limit)].append(one.id)
    for span, ids in by_span.items():
        its = sa.update(operations).where(operations.c.id.in_(ids), IS_RUNNING)
        connection.execute(its.values(not_before=database_now(span)))


def first_attempt(connection: sa.Connection, job_id: str, scope: Scope) -> AttemptKey:
    """Return the key of the attempt of a job that runs, for a worker that names no lease.

    Raises NotFound if none runs, and Refused unless it is the first attempt of the only one.
    """
    its = (actions.c.job_id == job_id, scope.has_unindexed(operations.c.small_app_id))
    query = sa.select(operations.c.id, operations.c.attempt, operations.c.secret)
    in_action = query.join(actions, actions.c.uid == operations.c.action_uid)
    rows = connection.execute(in_action.where(*its, IS_RUNNING, operations.c.task == JOB)).all()
    if not rows:
        raise NotFound(f"no job {job_id} is handed out")
    if len(rows) > 1 or rows[0].attempt > 1:
        raise Refused(f"job {job_id} was handed out more than once; send its `lease`")
    return AttemptKey(*rows[0])


def next_run(connection: sa.Connection, action_uid: UUID) -> datetime | None:
    """Return when an action is due next, None for never."""
    shown = (actions.c.uid, actions.c.small_app_id, actions.c.plan)
    query = sa.select(*shown, action_cursor.c.next_occurrence_at)
    query = query.join(action_cursor, action_cursor.c.action_uid == actions.c.uid)
    rows = dicts(connection, query.where(actions.c.uid == action_uid))
    return next((next_open(row) for row in closing_rows(connection, rows)), None)


def next_try(connection: sa.Connection, operation_id: UUID) -> datetime | None:
    """Return when an operation is tried again, None if it has ended."""
    is_pending = in_unindexed(operations.c.state, {OperationState.PENDING})
    query = sa.select(operations.c.not_before).where(operations.c.id == operation_id, is_pending)
    return connection.execute(query).scalar_one_or_none()
