"""Run missed, failed, partial or cancelled operations on request."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.sending import Sent, send_reserved
from models.action.plan import Plan, UnreadablePlan
from models.errors import Hint, NotFound, Refused
from models.operation import (
    RETRIABLE,
    UNSTARTED,
    Cause,
    CausedBy,
    OperationState,
    StepState,
    by_person,
)
from models.store import actions, audit, operations
from models.store.actions import cursors
from models.store.operations import heartbeat, put_back
from models.store.operations.reserve import Message
from models.store.scope import Scope
from scheduler.changes.revisions import action_ref
from scheduler.record import operation_row

# The parts of a document that define what its steps do.
WORK = ("operations", "recipients")
OLDER_MISSED = Hint(
    "run older missed occurrences with `minutebook backfill ACTION --from … --to …`",
    "run older missed occurrences by a backfill on the page of their action",
    "run older missed occurrences by POST /api/actions/{action}:backfill",
)


@dataclass(frozen=True, slots=True)
class Repeated:
    """An operation that runs again: its attempt, its new revision and its old one."""

    id: UUID
    attempt: int
    revision: int
    old_revision: int


def retry(engine: sa.Engine, operation_id: UUID, scope: Scope, actor: str) -> tuple[Repeated, Sent]:
    """Make a missed, failed, partial or cancelled operation pending, and send it.

    One that has begun gets a new attempt. It runs the action's current revision. If the steps do
    the same as before, the first steps that succeeded are skipped. Raises NotFound, or Refused if
    it succeeded, has not ended, or its action cannot run.
    """
    with engine.begin() as connection:
        try:
            uid = operations.get(connection, operation_id, scope)["action_uid"]
        except NotFound as error:
            # Older missed occurrences have a span instead of rows.
            raise NotFound(error.fact, OLDER_MISSED) from None
        action = cursors.lock(connection, uid)
        row = operations.get(connection, operation_id, scope)
        repeated, message = repeat(connection, action, row, actor)
    return repeated, send_reserved(engine, [message])


def repeat(
    connection: sa.Connection,
    action: sa.Row[Any],
    row: Mapping[str, Any],
    actor: str,
) -> tuple[Repeated, Message]:
    """Make an operation of a locked action pending in a transaction of the caller's.

    Raises Refused if its state or its action does not let it run.
    """
    if row["state"] not in RETRIABLE:
        raise _why_not(row)
    plan = runnable_plan(action)
    message = again(connection, action, plan, row, by_person(Cause.RETRY, actor))
    if message is None:
        raise Refused(f"operation {row['id']} changed meanwhile; try again")
    audit.write(
        connection,
        small_app_id=row["small_app_id"],
        actor=actor,
        verb="operation.retry",
        objects={str(row["id"]): {"was": row["state"], "revision": action.revision}},
    )
    repeated = Repeated(row["id"], message.attempt, action.revision, row["revision"])
    return repeated, message


def runnable_plan(action: sa.Row[Any]) -> Plan:
    """Return the plan under which an action's operations may run now; raises Refused."""
    if action.deleted_at is not None:
        raise Refused(f"{action.name!r} was deleted")
    if action.quarantined is not None:
        raise Refused(f"{action.name!r} is quarantined: {action.quarantined}; correct its document")
    plan: Plan | UnreadablePlan = action.plan
    if isinstance(plan, UnreadablePlan):
        remedy = Hint("run `minutebook action apply` with its document", "correct its document")
        raise Refused(f"{action.name!r} cannot run: {plan.text}", remedy)
    if not plan.active:
        remedy = Hint("run `minutebook action resume` first", "resume it first")
        raise Refused(f"{action.name!r} is paused", remedy)
    return plan


def again(
    connection: sa.Connection,
    action: sa.Row[Any],
    plan: Plan,
    operation: Mapping[str, Any],
    by: CausedBy,
) -> Message | None:
    """Make an ended operation pending under a locked action's revision; None if it moved.

    The caller commits, then sends the message.
    """
    becomes = _becomes(connection, action, plan, operation, by)
    return next(iter(put_back.requeue(connection, [operation], RETRIABLE, becomes)), None)


def all_again(
    connection: sa.Connection,
    action: sa.Row[Any],
    plan: Plan,
    ended: Sequence[Mapping[str, Any]],
    by: CausedBy,
) -> list[Message]:
    """Make ended operations pending as `again` does; those that run from their start at once."""
    whole = [one for one in ended if one["subject"] is None and not is_begun(one["steps"] or [])]
    ids = {one["id"] for one in whole}
    apart = [again(connection, action, plan, one, by) for one in ended if one["id"] not in ids]
    messages = [one for one in apart if one is not None]
    if whole:
        becomes = _becomes(connection, action, plan, whole[0], by)
        messages += put_back.requeue(connection, whole, RETRIABLE, becomes)
    in_order = {one["id"]: place for place, one in enumerate(ended)}
    return sorted(messages, key=lambda message: in_order[message.id])


def _becomes(
    connection: sa.Connection,
    action: sa.Row[Any],
    plan: Plan,
    operation: Mapping[str, Any],
    by: CausedBy,
) -> dict[str, Any]:
    id, occurrence = operation["id"], operation["occurrence_at"]
    row = operation_row(action_ref(action), plan, id, occurrence, by)
    taken = (
        *("revision", "cause", "triggerer", "queue", "task"),
        "overlap_key",
    )
    kept = _kept_steps(connection, action, operation)
    becomes = {key: row[key] for key in taken} | {
        "steps": kept,
        "first_started_at": _first_start(connection, operation) if kept else None,
    }
    if by.backfill_id is not None:
        becomes["backfill_id"] = by.backfill_id
    if operation["subject"] is not None:
        # Operations about different subjects do not overlap.
        becomes["overlap_key"] = operation["overlap_key"]
    return becomes


def _kept_steps(
    connection: sa.Connection, action: sa.Row[Any], operation: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    """Return the state of the steps if the first ones can be skipped; None to run all."""
    steps = operation["steps"] or []
    if not is_begun(steps):
        return None
    if operation["revision"] == action.revision:
        return steps
    documents = [
        actions.revision_document(connection, action.action_uid, number)
        for number in (operation["revision"], action.revision)
    ]
    return steps if does_the_same(*documents) else None


def is_begun(steps: list[dict[str, Any]]) -> bool:
    """Return whether the first step of an operation succeeded, but not all."""
    succeeded = [step.get("state") == StepState.SUCCESS for step in steps]
    return bool(succeeded) and succeeded[0] and not all(succeeded)


def does_the_same(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    """Return whether the steps of two revisions do the same for the same people, in order."""
    if old is None or new is None:
        return False
    return all(json.dumps(old.get(key)) == json.dumps(new.get(key)) for key in WORK)


def _first_start(connection: sa.Connection, operation: Mapping[str, Any]) -> datetime | None:
    """Return the effective start of an operation whose first steps are skipped.

    It is the first start, so that the next operation covers what was published since, but not
    before the action's last success.
    """
    known = heartbeat.memory(connection, operation["action_uid"], operation["subject"])
    starts: list[datetime] = [
        at for at in (operation["first_started_at"], known.last_success_at) if at is not None
    ]
    return max(starts, default=None)


def _why_not(row: Mapping[str, Any]) -> Refused:
    status = f"operation {row['id']} is {row['state']}"
    if row["state"] in UNSTARTED or row["state"] == OperationState.RUNNING:
        return Refused(f"{status}; it has not ended")
    return Refused(
        status, Hint("run its action with `minutebook action run`", "run its action again")
    )
