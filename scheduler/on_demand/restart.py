"""Run missed, failed, partial or cancelled operations on request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.sending import Sent, send_reserved
from models.action.plan import Plan, UnreadablePlan
from models.errors import Hint, NotFound, Refused
from models.operation import RETRIABLE, UNSTARTED, Cause, OperationState, StepState, by_person
from models.store import audit, operations
from models.store.actions import cursors
from models.store.operations import heartbeat, put_back
from models.store.operations.reserve import Message
from models.store.scope import Scope
from scheduler.changes.revisions import action_ref
from scheduler.record import work_columns

# The columns of an operation that runs again from its first step.
FROM_THE_START = {"steps": None, "first_started_at": None}
OLDER_MISSED = Hint(
    "run older missed occurrences with `minutebook backfill ACTION --from … --to …`",
    "run older missed occurrences by a backfill on the page of their action",
    "run older missed occurrences by POST /api/actions/{action}:backfill",
)
RUN_AGAIN = Hint("run its action with `minutebook action run`", "run its action again")
APPLY_AGAIN = Hint("run `minutebook action apply` with its document", "correct its document")
RESUME = Hint("run `minutebook action resume` first", "resume it first")
UNENDED = "it has not ended; wait for its end, or cancel it"


@dataclass(frozen=True, slots=True)
class Repeated:
    """An operation that runs again: its attempt, its new revision and its old one."""

    id: UUID
    attempt: int
    revision: int
    old_revision: int


def retry(engine: sa.Engine, operation_id: UUID, scope: Scope, actor: str) -> tuple[Repeated, Sent]:
    """Make a missed, failed, partial or cancelled operation pending, and send it.

    One that has begun gets a new attempt. It runs the action's current revision; if that is the
    one before, the first steps that succeeded are skipped. Raises NotFound, or Refused if it
    succeeded, has not ended, or its action cannot run.
    """
    with engine.begin() as connection:
        repeated, message = retry_within(connection, operation_id, scope, actor)
    return repeated, send_reserved(engine, [message])


def retry_within(
    connection: sa.Connection, operation_id: UUID, scope: Scope, actor: str
) -> tuple[Repeated, Message]:
    """Make an operation pending as `retry` does; the caller commits, then sends the message."""
    try:
        uid = operations.get(connection, operation_id, scope)["action_uid"]
    except NotFound as error:
        # Older missed occurrences have a span instead of rows.
        raise NotFound(error.fact, OLDER_MISSED) from None
    action = cursors.lock(connection, uid)
    row = operations.get(connection, operation_id, scope)
    if row["state"] not in RETRIABLE:
        raise _why_not(row)
    becomes = work_columns(action_ref(action), runnable_plan(action), by_person(Cause.RETRY, actor))
    becomes |= _kept_steps(connection, action, row)
    if row["subject"] is not None:
        # Operations about different subjects do not overlap.
        becomes["overlap_key"] = row["overlap_key"]
    messages = put_back.requeue(connection, [row], RETRIABLE, becomes)
    if not messages:
        raise Refused(f"run {row['id']} changed meanwhile; try again")
    audit.write(
        connection,
        small_app_id=row["small_app_id"],
        actor=actor,
        verb="operation.retry",
        objects={str(row["id"]): {"was": row["state"], "revision": action.revision}},
    )
    (message,) = messages
    return Repeated(row["id"], message.attempt, action.revision, row["revision"]), message


def runnable_plan(action: sa.Row[Any]) -> Plan:
    """Return the plan under which an action's operations may run now; raises Refused."""
    if action.deleted_at is not None:
        raise Refused(f"{action.name!r} was deleted")
    if action.quarantined is not None:
        raise Refused(f"{action.name!r} is quarantined: {action.quarantined}; correct its document")
    plan: Plan | UnreadablePlan = action.plan
    if isinstance(plan, UnreadablePlan):
        raise Refused(f"{action.name!r} cannot run: {plan.text}", APPLY_AGAIN)
    if not plan.active:
        raise Refused(f"{action.name!r} is paused", RESUME)
    return plan


def _kept_steps(
    connection: sa.Connection, action: sa.Row[Any], operation: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the states of the steps if the first ones are skipped, and the effective start.

    That is the first start, so that the next operation covers what was published since, but not
    before the action's last success.
    """
    steps = operation["steps"] or []
    if operation["revision"] != action.revision or not is_begun(steps):
        return FROM_THE_START
    known = heartbeat.memory(connection, operation["action_uid"], operation["subject"])
    starts = (operation["first_started_at"], known.last_success_at)
    first = max((at for at in starts if at is not None), default=None)
    return {"steps": steps, "first_started_at": first}


def is_begun(steps: list[dict[str, Any]]) -> bool:
    """Return whether the first step of an operation succeeded, but not all."""
    succeeded = [step.get("state") == StepState.SUCCESS for step in steps]
    return bool(succeeded) and succeeded[0] and not all(succeeded)


def _why_not(row: Mapping[str, Any]) -> Refused:
    status = f"run {row['id']} is {row['state']}"
    if row["state"] in UNSTARTED or row["state"] == OperationState.RUNNING:
        return Refused(f"{status}; {UNENDED}")
    return Refused(status, RUN_AGAIN)
