"""End an attempt: its rows, the action's state, and the operations that waited for it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.events import ENDS
from models.notices import TIME_BOX
from models.operation import (
    DONE,
    OUTCOMES,
    UNSTARTED,
    AttemptKey,
    OperationState,
    StepState,
)
from models.sql import database_now, in_unindexed, upsert, upsert_one
from models.store.notices import Owed, alerting
from models.store.notices.alerting import LATEST, STATUS
from models.store.notices.findings import open_of
from models.store.operations import ends, is_requested, transitions
from models.store.operations.heartbeat import (
    ATTEMPT,
    ProgressUpdate,
    fence,
    lease_lost,
    write_lines,
)
from models.store.operations.reserve import MESSAGE, Message
from models.store.operations.transitions import KEPT_REASON, RUNNING, move
from models.tables import action_state, operations, revisions
from runtime.database import is_of_no_row
from runtime.sections import AlertSettings


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ends: `state` is an outcome, or pending for another attempt."""

    state: OperationState
    error: str | None = None
    reason: str | None = None
    result: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    # For pending: the delay of the next attempt, and what this one counts as.
    delay: timedelta = timedelta(0)
    is_failure: bool = False
    is_loss: bool = False
    # The states it may end from: another application's operation may end without a claim.
    since: frozenset[OperationState] = RUNNING

    @property
    def is_put_back(self) -> bool:
        """Whether another attempt follows, though this one did not fail."""
        return self.state is OperationState.PENDING and not self.is_failure

    @property
    def why(self) -> str | None:
        """Its error, or else its reason."""
        return self.error or self.reason

    @property
    def cut_off_step(self) -> StepState:
        """The state of a step that was running."""
        return StepState.WAITING if self.is_put_back else StepState.FAILED


@dataclass(frozen=True, slots=True)
class EndResult:
    """How an attempt ended, the released operations in sending order, and notices to send.

    `raised` is the event that its end is, if another action is due by that.
    """

    state: OperationState
    released: list[Message]
    owed: list[Owed] = field(default_factory=list)
    raised: ends.Raised | None = None


def end_at_least(
    connection: sa.Connection, id: UUID, ending: Outcome, act: Callable[[], None]
) -> None:
    """End an operation by `act`; if a broken row makes that fail, move the operation alone."""
    try:
        with connection.begin_nested():
            act()
    except Exception as error:  # so broken that no action is known
        if is_of_no_row(error):
            raise
        why = {"reason": ending.reason, "error": ending.error}
        its_own = operations.c.id == id
        connection.execute(move(ending.state, its_own, since=ending.since, **why))


_SHOW_STEPS = (
    sa.update(operations)
    .where(operations.c.id == sa.bindparam("its_id"))
    .values(steps=sa.bindparam("its_steps", type_=operations.c.steps.type))
)


def end(
    connection: sa.Connection,
    key: AttemptKey,
    ending: Outcome,
    story: ProgressUpdate | None = None,
    *,
    alerts: AlertSettings,
) -> EndResult:
    """End this attempt; `story` is its progress that is not stored yet.

    The caller's transaction writes the row, an attempt that another one follows, the action's
    state, the release and the notices. Raises LeaseLost if the operation has moved meanwhile.
    """
    if ending.state is OperationState.PENDING:
        ending = _put_back(connection, key, ending)
    ended = _end_statement(ending.state, ending.since, int(ending.is_failure), int(ending.is_loss))
    values = {**fence(key), **(story.values if story else {}), **_ending_values(ending)}
    row = connection.execute(ended, values).one_or_none()
    if row is None:
        raise lease_lost(connection, key)
    if any(step["state"] == StepState.RUNNING for step in row.steps or []):
        cut_off = {"state": ending.cut_off_step, "error": ending.why}
        steps = [
            {**step, **cut_off} if step["state"] == StepState.RUNNING else step
            for step in row.steps
        ]
        connection.execute(_SHOW_STEPS, {"its_id": key.id, "its_steps": steps})
    if story:
        write_lines(connection, key.id, story)
    owed: list[Owed] = []
    status = _remember(connection, row, ending)
    if status is not None:
        owed = alerting.enqueue(connection, row, status, alerts)
    raised = ends.raise_event(connection, row) if row.has_dependants else None
    has_others = status is None or status.has_others
    released = release_waiting(connection, key.id) if has_others else []
    return EndResult(ending.state, released, owed, raised)


def _put_back(connection: sa.Connection, key: AttemptKey, ending: Outcome) -> Outcome:
    """Keep the attempt before the next one; return how it ends: cancelled if that was asked."""
    if _cancel_requested(connection, key.id):
        # A new attempt would be cancelled at its first heartbeat, or cancel its replacement.
        return replace(ending, state=OperationState.CANCELLED, is_failure=False)
    transitions.archive_attempt(connection, key, _attempt_state(ending), ending.why)
    return ending


def _cancel_requested(connection: sa.Connection, operation_id: UUID) -> bool:
    asked = sa.select(operations.c.cancel_requested_at).where(operations.c.id == operation_id)
    return connection.execute(asked.with_for_update()).scalar_one_or_none() is not None


def _attempt_state(ending: Outcome) -> str:
    return OperationState.FAILED if ending.is_failure else ending.reason or "put back"


# What an action counts as a run, whether or not its end is known.
_RUNS = OUTCOMES | {OperationState.HANDED_OVER}
# Without a known start, the sending counts as the start.
_RAN_AT = sa.func.coalesce(
    operations.c.first_started_at, operations.c.send_started_at, database_now()
).label("ran_at")
# SQLite's RETURNING drops table names: columns of a subquery need distinct names.
_recorded = sa.select(
    revisions.c.plan,
    revisions.c.action_uid.label("its_action"),
    revisions.c.number.label("its_number"),
).subquery("recorded")
# Returned with the end: without notices, this saves a statement.
PLAN = (
    sa.select(_recorded.c.plan)
    .where(_recorded.c.its_action == operations.c.action_uid)
    .where(_recorded.c.its_number == operations.c.revision)
    .correlate(operations)
    .scalar_subquery()
    .label("plan")
)


@lru_cache(maxsize=64)
def _end_statement(
    state: OperationState, since: frozenset[OperationState], failures: int, losses: int
) -> sa.Update:
    values: dict[str, Any] = {
        "failures": operations.c.failures + failures,
        "losses": operations.c.losses + losses,
    }
    if state is OperationState.PENDING:
        values["not_before"] = database_now(sa.bindparam("its_delay_s", type_=sa.Float))
    reason = sa.bindparam("its_reason", type_=operations.c.reason.type)
    # The request to cancel has set the reason.
    is_cancelled = state is OperationState.CANCELLED
    reasons = (operations.c.reason, reason) if is_cancelled else (KEPT_REASON, reason)
    values["reason"] = sa.func.coalesce(*reasons)
    is_handed_over = state is OperationState.HANDED_OVER
    # Else a worker has claimed it meanwhile, and it waits for another operation.
    is_its = ATTEMPT & operations.c.send_started_at.is_not(None) if is_handed_over else ATTEMPT
    return move(state, is_its, since=since, **values).returning(
        operations.c.id,
        operations.c.attempt,
        operations.c.action_uid,
        operations.c.subject,
        operations.c.state,
        operations.c.reason,
        _RAN_AT,
        operations.c.finished_at,
        operations.c.steps,
        PLAN if state in _RUNS else sa.null().label("plan"),
        ends.HAS_DEPENDANTS if state in ENDS else sa.false().label("has_dependants"),
    )


def _ending_values(ending: Outcome) -> dict[str, Any]:
    # What the story says last of it is over.
    values: dict[str, Any] = {"error": ending.error, "is_blocking": None}
    values["its_reason"] = ending.reason
    if ending.state is OperationState.PENDING:
        return values | {"its_delay_s": ending.delay.total_seconds()}
    if ending.state in DONE:
        values |= {"progress": 1.0, "message": None, "phase": None}
    if ending.result is not None:
        values["result"] = ending.result
    return values


def _remember(connection: sa.Connection, row: sa.Row[Any], ending: Outcome) -> sa.Row[Any] | None:
    """Write the action's state, in the transaction that ends the operation.

    Returns the action's status after it; None for an attempt that is not the last. The
    state is kept per subject, and for the action as a whole.
    """
    values: dict[str, Any] = {}
    if ending.checkpoint is not None:
        values["checkpoint"] = ending.checkpoint
    key = {"action_uid": row.action_uid, "subject": row.subject or ""}
    its = {"ended": row.id, "its_action": row.action_uid}
    if ending.state not in _RUNS:
        if values:
            upsert(connection, action_state, [{**key, **values}])
        return None
    known = known_after(ending.state, row.ran_at)
    counted = _counted(ending)
    given = {**key, **values, **known, **counted, **its}
    how = ((*STATUS, _OPEN, _HAS_OTHERS), tuple(counted), LATEST)
    status = upsert_one(connection, action_state, given, *how)
    if row.subject:
        # Always after the subject's row, so that no two ends deadlock.
        whole = {"action_uid": row.action_uid, "subject": "", **known, **counted, **its}
        status = upsert_one(connection, action_state, whole, *how)
    return status


def known_after(state: OperationState, ran_at: datetime) -> dict[str, Any]:
    """Return what an action knows of its last run, apart from what is counted."""
    known: dict[str, Any] = {"last_state": state, "last_run_at": ran_at}
    match state:
        case OperationState.SUCCESS:
            known |= {"last_success_at": ran_at, "failures_in_row": 0, "bad_runs_in_a_row": 0}
        case OperationState.PARTIAL:
            known |= {"failures_in_row": 0}
        case OperationState.HANDED_OVER:
            # Nothing is known to have failed.
            known |= {"failures_in_row": 0, "bad_runs_in_a_row": 0}
    return known


def _counted(ending: Outcome) -> dict[str, int]:
    """Return what an end adds to the counters; the time box is no failure."""
    match ending.state:
        case OperationState.PARTIAL if ending.reason != TIME_BOX:
            return {"run_number": 1, "bad_runs_in_a_row": 1}
        case OperationState.FAILED:
            return {"run_number": 1, "failures_in_row": 1, "bad_runs_in_a_row": 1}
    return {"run_number": 1}


# Asked after the row was moved: what decides to wait for it holds its lock until then.
_behind = operations.alias("behind")
_HAS_OTHERS = (
    sa.exists()
    .where(_behind.c.waiting_for == sa.bindparam("ended", type_=operations.c.id.type))
    .label("has_others")
)
_OPEN = open_of(sa.bindparam("its_action", type_=operations.c.action_uid.type))
_before = operations.alias("before")
_WAITING = (
    sa.select(operations.c.id)
    .where(
        operations.c.waiting_for == sa.bindparam("ended"),
        in_unindexed(operations.c.state, UNSTARTED),
    )
    .order_by(is_requested(operations.c), operations.c.occurrence_at, operations.c.id)
)


def release_waiting(connection: sa.Connection, ended: UUID) -> list[Message]:
    """Release the first of the operations that wait for `ended`; the others now wait for it.

    Scheduled ones come before requested ones, each kind by occurrence. Every operation thus waits
    for a running one or one before it, never in a circle.
    """
    first, *others = [*connection.execute(_WAITING, {"ended": ended}).scalars(), None]
    if first is None:
        return []
    behind = [id for id in others if id is not None]
    if behind:
        its_row = operations.c.id.in_(behind)
        connection.execute(sa.update(operations).where(its_row).values(waiting_for=first))
    released = (
        sa.update(operations)
        .where(operations.c.id == first, in_unindexed(operations.c.state, UNSTARTED))
        .values(waiting_for=None, reason=None, not_before=database_now(), sendings=0)
        .returning(*MESSAGE)
    )
    return [Message(*row) for row in connection.execute(released)]
