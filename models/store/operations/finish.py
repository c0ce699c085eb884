"""How an attempt ends: the row, its attempt, what the action knows, and who waited for it."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.notices import TIME_BOX
from models.operation import DONE, OUTCOMES, UNSTARTED, OperationState, StepState
from models.sql import database_now, stands_in, upsert, upsert_one
from models.store.notices import Owed, alerting
from models.store.notices.alerting import LATEST, NO_ALERTS, STANDING, End
from models.store.operations import asked_for
from models.store.operations.outbox import Message
from models.store.operations.running import MINE, Story, lease_lost, mine, write_lines
from models.tables import action_state, attempts, operations, revisions
from runtime.sections import AlertSettings


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ends: `state` is an outcome, or pending when it is to be tried again."""

    state: OperationState
    error: str | None = None
    reason: str | None = None
    result: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    # For pending: how long until the next attempt, and what this one counts as.
    delay: timedelta = timedelta(0)
    is_failure: bool = False
    is_loss: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt really ended, and what is to be sent: who waited for it, what it owes.

    Who waited is to be sent in this order.
    """

    state: OperationState
    released: list[Message]
    owed: list[Owed] = field(default_factory=list)


_ATTEMPT_ENDED = (
    sa.update(attempts)
    .where(
        attempts.c.operation_id == sa.bindparam("its_id"),
        attempts.c.attempt == sa.bindparam("its_attempt"),
    )
    .values(
        finished_at=database_now(),
        state=sa.bindparam("its_state"),
        error=sa.bindparam("its_error"),
    )
)


def end(
    connection: sa.Connection,
    operation_id: UUID,
    attempt: int,
    ending: Ending,
    story: Story | None = None,
    alerts: AlertSettings = NO_ALERTS,
) -> Ended:
    """End this attempt; `story` is what the row does not show yet of it.

    One transaction of the caller's: the row, its attempt, what the action knows, the release, and
    the notices that are owed. Raises LeaseLost.
    """
    if ending.state is OperationState.PENDING and _cancel_requested(connection, operation_id):
        # Put back, it would be cancelled at its first heartbeat, or cancel what replaces it.
        ending = replace(ending, state=OperationState.CANCELLED, is_failure=False)
    ours = mine(operation_id, attempt)
    ended = _end_statement(ending.state, int(ending.is_failure), int(ending.is_loss))
    values = {**ours, **(story.values if story else {}), **_ending_values(ending)}
    row = connection.execute(ended, values).one_or_none()
    if row is None:
        raise lease_lost(operation_id, attempt)
    if any(step["state"] == StepState.RUNNING for step in row.steps or []):
        steps = [_cut_off(step, ending) for step in row.steps]
        shown = sa.update(operations).where(operations.c.id == operation_id)
        connection.execute(shown.values(steps=steps))
    told = {"its_state": _attempt_state(ending), "its_error": ending.error or ending.reason}
    connection.execute(_ATTEMPT_ENDED, {**ours, **told})
    if story:
        write_lines(connection, operation_id, story)
    return conclude(connection, row, (operation_id, attempt), ending, alerts)


def conclude(
    connection: sa.Connection,
    row: sa.Row[Any],
    its: tuple[UUID, int],
    ending: Ending,
    alerts: AlertSettings,
) -> Ended:
    """Write what the end of an attempt (id, number) means to its action and to who waits for it.

    `row` is the ended operation's, with its plan.
    """
    owed: list[Owed] = []
    standing = _remember(connection, row, ending)
    if standing is not None:
        known = (row.action_uid, ending.state, ending.reason, row.finished_at, row.plan or "")
        owed = alerting.owe(connection, End(its[0], its[1], *known), standing, alerts)
    return Ended(ending.state, release_waiting(connection, its[0]), owed)


def _cancel_requested(connection: sa.Connection, operation_id: UUID) -> bool:
    asked = sa.select(operations.c.cancel_requested_at).where(operations.c.id == operation_id)
    return connection.execute(asked.with_for_update()).scalar_one_or_none() is not None


def _cut_off(step: dict[str, Any], ending: Ending) -> dict[str, Any]:
    """Return a step's story when its attempt ends: one that still ran was cut off."""
    if step["state"] != StepState.RUNNING:
        return step
    is_put_back = ending.state is OperationState.PENDING and not ending.is_failure
    told = StepState.WAITING if is_put_back else StepState.FAILED
    return {**step, "state": told, "error": ending.error or ending.reason}


def _attempt_state(ending: Ending) -> str:
    if ending.is_failure:
        return OperationState.FAILED
    if ending.state is OperationState.PENDING:
        return ending.reason or "put back"
    return ending.state


# SQLite's RETURNING has columns without their tables: those of a subquery need names of their own.
_recorded = sa.select(
    revisions.c.plan,
    revisions.c.action_uid.label("its_action"),
    revisions.c.number.label("its_number"),
).subquery("recorded")
# With the end itself: no statement more for those who have nobody to tell.
PLAN = (
    sa.select(_recorded.c.plan)
    .where(_recorded.c.its_action == operations.c.action_uid)
    .where(_recorded.c.its_number == operations.c.revision)
    .correlate(operations)
    .scalar_subquery()
    .label("plan")
)


@lru_cache(maxsize=64)
def _end_statement(state: OperationState, failures: int, losses: int) -> sa.Update:
    values: dict[str, Any] = {
        "state": state,
        "failures": operations.c.failures + failures,
        "losses": operations.c.losses + losses,
        "eta_at": None,
    }
    if state is OperationState.PENDING:
        values |= {
            "attempt": operations.c.attempt + 1,
            "sendings": 0,
            "handing_at": None,
            "worker": None,
            "heartbeat_at": None,
            "not_before": database_now(sa.bindparam("its_delay_s", type_=sa.Float)),
        }
    else:
        values |= {"finished_at": database_now()}
    if state is OperationState.CANCELLED:
        # Who asked for it has said why.
        reason = sa.bindparam("its_reason", type_=operations.c.reason.type)
        values["reason"] = sa.func.coalesce(operations.c.reason, reason)
    ended = sa.update(operations).where(MINE).values(values)
    return ended.returning(
        operations.c.action_uid,
        operations.c.subject,
        operations.c.first_started_at,
        operations.c.finished_at,
        operations.c.steps,
        PLAN if state in OUTCOMES else sa.null().label("plan"),
    )


def _ending_values(ending: Ending) -> dict[str, Any]:
    values: dict[str, Any] = {"error": ending.error}
    is_cancelled = ending.state is OperationState.CANCELLED
    values["its_reason" if is_cancelled else "reason"] = ending.reason
    if ending.state is OperationState.PENDING:
        return values | {"its_delay_s": ending.delay.total_seconds()}
    if ending.state in DONE:
        values |= {"progress": 1.0, "message": None, "phase": None}
    if ending.result is not None:
        values["result"] = ending.result
    return values


def _remember(connection: sa.Connection, row: sa.Row[Any], ending: Ending) -> sa.Row[Any] | None:
    """Write what the action knows, in the transaction that ends the operation.

    Returns how the action then stands (STANDING); None for an attempt that is not the last. What
    is about a subject is kept for the subject, and for the action as a whole.
    """
    values: dict[str, Any] = {}
    if ending.checkpoint is not None:
        values["checkpoint"] = ending.checkpoint
    key = {"action_uid": row.action_uid, "subject": row.subject or ""}
    if ending.state not in OUTCOMES:
        if values:
            upsert(connection, action_state, [{**key, **values}])
        return None
    known = {"last_state": ending.state, "last_run_at": row.first_started_at}
    known |= _kept(ending.state, row.first_started_at)
    counted = _counted(ending)
    given = {**key, **values, **known, **counted}
    how = (STANDING, tuple(counted), LATEST)
    standing = upsert_one(connection, action_state, given, *how)
    if row.subject:
        # Always after the subject's own: nobody waits for another in a circle.
        whole = {"action_uid": row.action_uid, "subject": "", **known, **counted}
        standing = upsert_one(connection, action_state, whole, *how)
    return standing


def _kept(state: OperationState, started_at: datetime) -> dict[str, Any]:
    match state:
        case OperationState.SUCCESS:
            return {"last_success_at": started_at, "failures_in_row": 0, "troubles_in_row": 0}
        case OperationState.PARTIAL:
            return {"failures_in_row": 0}
    return {}


def _counted(ending: Ending) -> dict[str, int]:
    """Return what an end adds to the counters; a stop in time is no trouble."""
    match ending.state:
        case OperationState.PARTIAL if ending.reason != TIME_BOX:
            return {"run_number": 1, "troubles_in_row": 1}
        case OperationState.FAILED:
            return {"run_number": 1, "failures_in_row": 1, "troubles_in_row": 1}
    return {"run_number": 1}


_before = operations.alias("before")
_ended_was_asked_for = (
    sa.select(asked_for(_before.c.triggerer))
    .where(_before.c.id == sa.bindparam("ended"))
    .scalar_subquery()
)
_is_asked_for = asked_for(operations.c.triggerer).label("is_asked_for")
_WAITING = (
    sa.select(operations.c.id, _is_asked_for)
    .where(
        operations.c.waiting_for == sa.bindparam("ended"),
        stands_in(operations.c.state, UNSTARTED),
    )
    # The schedule and what somebody asked for take turns: neither keeps the other from running.
    .order_by(
        sa.case((_is_asked_for == _ended_was_asked_for, 1), else_=0),
        operations.c.occurrence_at,
        operations.c.id,
    )
)


def release_waiting(connection: sa.Connection, ended: UUID) -> list[Message]:
    """Release the oldest operations that wait for `ended`; the others now wait for those.

    One that a schedule sent and one that somebody asked for, in the order in which they are to be
    sent: who was not of the ended one's kind comes first. One of them starts, the other waits for
    it. So who waits, waits for a running one or for an older one of its kind: never in a circle.
    """
    heads: dict[bool, UUID] = {}
    behind: dict[bool, list[UUID]] = {}
    for row in connection.execute(_WAITING, {"ended": ended}):
        kind = bool(row.is_asked_for)
        if heads.setdefault(kind, row.id) != row.id:
            behind.setdefault(kind, []).append(row.id)
    for kind, others in behind.items():
        connection.execute(
            sa.update(operations).where(operations.c.id.in_(others)).values(waiting_for=heads[kind])
        )
    in_order = list(heads.values())
    if not in_order:
        return []
    released = (
        sa.update(operations)
        .where(operations.c.id.in_(in_order), operations.c.state.in_(UNSTARTED))
        .values(waiting_for=None, reason=None, not_before=database_now(), sendings=0)
        .returning(operations.c.id, operations.c.attempt, operations.c.task, operations.c.queue)
    )
    messages = [Message(*row) for row in connection.execute(released)]
    return sorted(messages, key=lambda message: in_order.index(message.id))
