"""Claim an operation by changing exactly one row, or return why it does not start."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from minutehand.grants import Grants
from minutehand.steps import SmallApp
from models.action.plan import NOTHING_PLANNED, Broken, Plan
from models.operation import UNSTARTED, Cause, OperationState
from models.sql import stands_in
from models.store import notices
from models.store.notices.alerting import NO_ALERTS
from models.store.operations.admission import NotClaimed, Recorded, keep_back, refuse
from models.store.operations.finish import Ending, end
from models.store.operations.move import move
from models.store.operations.running import Memory, memory
from models.tables import actions, attempts, operations, revisions, small_apps
from runtime.sections import AlertSettings

# Takes the document and the earlier attempts' steps; returns the columns to write at the start.
Begin = Callable[[str, list[dict[str, Any]]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Claim:
    """An attempt that this worker owns, and what it runs."""

    id: UUID
    attempt: int
    small_app: SmallApp
    action_uid: UUID
    occurrence_at: datetime
    subject: str | None
    cause: Cause
    triggerer: str
    failures: int
    losses: int
    plan: Plan
    grants: Grants
    # What the action knew when the attempt started.
    memory: Memory


def claim(
    connection: sa.Connection,
    operation_id: UUID,
    attempt: int,
    worker: str,
    begin: Begin = lambda _document, _steps: {},
    alerts: AlertSettings = NO_ALERTS,
) -> Claim | NotClaimed:
    """Start this attempt for `worker`, or apply what keeps it from starting.

    The caller commits in any case: on a refusal, the transaction holds its consequences (skipped,
    waiting, a cancel requested of the running one). Raises sqlalchemy.exc.IntegrityError
    (operations_one_running) if another operation of the action starts at the same moment; the
    caller then tries again in a new transaction.
    """
    its = (operation_id, attempt)
    recorded = recorded_of(connection, *its)
    if recorded is None:
        return NotClaimed.TAKEN
    kept_back = keep_back(connection, recorded, attempt)
    if kept_back is not None:
        return kept_back
    shown = begin(recorded.document, recorded.steps or []) if recorded.broken is None else {}
    started = _start(connection, recorded.id, attempt, worker, shown)
    if started is None:
        return refuse(connection, *its)
    if recorded.broken is not None:
        fault = Ending(OperationState.FAILED, recorded.broken, "broken plan", is_failure=True)
        notices.send_soon(connection, end(connection, *its, fault, alerts=alerts).owed)
        return NotClaimed.BROKEN
    return _claimed(connection, recorded, attempt, worker, started)


# Whether the operation's action is active.
is_wanted = sa.exists().where(
    actions.c.uid == operations.c.action_uid, actions.c.active, actions.c.deleted_at.is_(None)
)
_can_start = sa.and_(
    operations.c.attempt == sa.bindparam("its_attempt"),
    operations.c.state.in_(UNSTARTED),
    is_wanted,
)
_other = operations.alias("other")
_RECORDED = (
    sa.select(
        operations.c.id,
        operations.c.small_app_id,
        small_apps.c.name.label("app_name"),
        small_apps.c.zone.label("app_zone"),
        small_apps.c.grants,
        operations.c.action_uid,
        operations.c.occurrence_at,
        operations.c.subject,
        operations.c.event_at,
        operations.c.overlap_key,
        operations.c.cause,
        operations.c.triggerer,
        operations.c.first_started_at,
        operations.c.steps,
        _can_start.label("can_start"),
        sa.select(_other.c.id)
        .where(_other.c.overlap_key == operations.c.overlap_key)
        .where(stands_in(_other.c.state, {OperationState.RUNNING}))
        .scalar_subquery()
        .label("running"),
        revisions.c.document,
        revisions.c.plan,
    )
    .join(small_apps, small_apps.c.id == operations.c.small_app_id)
    .join(
        revisions,
        (revisions.c.action_uid == operations.c.action_uid)
        & (revisions.c.number == operations.c.revision),
    )
    .where(operations.c.id == sa.bindparam("its_id"))
)


def recorded_of(connection: sa.Connection, operation_id: UUID, attempt: int) -> Recorded | None:
    """Return the recorded facts about an operation, None if the id is unknown."""
    asked = {"its_id": operation_id, "its_attempt": attempt}
    row = connection.execute(_RECORDED, asked).one_or_none()
    if row is None:
        return None
    if isinstance(row.plan, Broken):
        # It waits for its turn, and fails then.
        return Recorded(**{**row._mapping, "plan": NOTHING_PLANNED, "broken": row.plan.text})
    return Recorded(**row._mapping)


_START = move(
    OperationState.RUNNING,
    operations.c.id == sa.bindparam("its_id"),
    _can_start,
    worker=sa.bindparam("its_worker"),
).returning(operations.c.started_at, operations.c.failures, operations.c.losses)
_ATTEMPT = sa.insert(attempts)


def _start(
    connection: sa.Connection, id: UUID, attempt: int, worker: str, shown: dict[str, Any]
) -> sa.Row[Any] | None:
    given = {"its_id": id, "its_attempt": attempt, "its_worker": worker, **shown}
    return connection.execute(_START, given).one_or_none()


def _claimed(
    connection: sa.Connection, recorded: Recorded, attempt: int, worker: str, row: sa.Row[Any]
) -> Claim:
    begun = {"operation_id": recorded.id, "attempt": attempt, "worker": worker}
    connection.execute(
        _ATTEMPT, {**begun, "started_at": row.started_at, "state": OperationState.RUNNING}
    )
    return Claim(
        id=recorded.id,
        attempt=attempt,
        small_app=SmallApp(recorded.small_app_id, recorded.app_name, recorded.app_zone),
        action_uid=recorded.action_uid,
        occurrence_at=recorded.occurrence_at,
        subject=recorded.subject,
        cause=Cause(recorded.cause),
        triggerer=recorded.triggerer,
        failures=row.failures,
        losses=row.losses,
        plan=recorded.plan,
        grants=recorded.grants,
        # Read after the start: no other operation of the action can end any more.
        memory=memory(connection, recorded.action_uid, recorded.subject),
    )
