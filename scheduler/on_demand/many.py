"""Retry or cancel many operations on request, one after the other, each in its own transaction."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from broker.sending import Sent, send_ended, send_reserved
from models.errors import NotFound, Refused
from models.operation import RETRIABLE, UNSTARTED, OperationState
from models.store import operations
from models.store.actions import cursors
from models.store.operations.end import EndResult
from models.store.operations.reserve import Message
from models.store.scope import Scope
from runtime.database import reading
from runtime.db_retry import in_transaction
from scheduler.on_demand.cancel import cancel_within
from scheduler.on_demand.restart import RUN_AGAIN, UNENDED, retry_within, runnable_plan

GONE = "it does not exist any more"
MOVED = "it changed meanwhile"


class ManyVerb(StrEnum):
    """What is done to many operations."""

    RETRY = "retry"
    CANCEL = "cancel"


TAKES: Mapping[ManyVerb, Collection[OperationState]] = {
    ManyVerb.RETRY: RETRIABLE,
    ManyVerb.CANCEL: UNSTARTED | {OperationState.RUNNING},
}
# Without a state: a person cancelled on purpose, and a missed one may be too old to matter.
USUALLY: Mapping[ManyVerb, Collection[OperationState]] = {
    **TAKES,
    ManyVerb.RETRY: frozenset({OperationState.FAILED, OperationState.PARTIAL}),
}


@dataclass(frozen=True, slots=True)
class ManyRequest:
    """A request of an actor."""

    verb: ManyVerb
    scope: Scope
    actor: str


@dataclass(frozen=True, slots=True)
class ManyChanged:
    """The operations that were or would be changed, and why each of the others is left out."""

    changed: Sequence[UUID]
    left_out: Mapping[UUID, str]


def planned(connection: sa.Connection, request: ManyRequest, ids: Sequence[UUID]) -> ManyChanged:
    """Return what a request would do to these operations."""
    scope, found = request.scope, operations.by_ids(connection, ids)
    its = [one for one in found if scope.small_app_id in {None, one["small_app_id"]}]
    rows = {one["id"]: one for one in its}
    actions = cursors.seen(connection, list({row["action_uid"] for row in rows.values()}))
    reasons = {id: _why_left_out(request.verb, rows.get(id), actions) for id in ids}
    changed = [id for id, why in reasons.items() if why is None]
    return ManyChanged(changed, {id: why for id, why in reasons.items() if why is not None})


def _why_left_out(
    verb: ManyVerb, row: Mapping[str, Any] | None, actions: Mapping[UUID, sa.Row[Any]]
) -> str | None:
    """Return why an operation cannot be changed so, in the words of a page; None if it can."""
    if row is None:
        return GONE
    if row["state"] not in TAKES[verb]:
        remedy = UNENDED if row["state"] in TAKES[ManyVerb.CANCEL] else RUN_AGAIN.page
        return f"it is {row['state']}{f'; {remedy}' if verb is ManyVerb.RETRY else ''}"
    if verb is ManyVerb.CANCEL:
        return "it was already asked to end" if row["cancel_requested_at"] else None
    try:
        runnable_plan(actions[row["action_uid"]])
    except Refused as error:
        return error.on_page
    return None


def change_many(
    engine: sa.Engine, request: ManyRequest, ids: Sequence[UUID]
) -> tuple[ManyChanged, Sent]:
    """Change these operations, then send what runs again; return what was sent as well."""
    with reading(engine) as connection:
        plan = planned(connection, request, ids)
    changed, left_out = list[UUID](), dict(plan.left_out)
    messages: list[Message] = []
    for id in plan.changed:
        try:
            made = in_transaction(engine, partial(_change, request=request, id=id))
        except (NotFound, Refused):
            left_out[id] = MOVED
            continue
        changed.append(id)
        if isinstance(made, Message):
            messages.append(made)
        else:
            send_ended(engine, made)
    return ManyChanged(changed, left_out), send_reserved(engine, messages)


def _change(
    connection: sa.Connection, request: ManyRequest, id: UUID
) -> Message | EndResult | None:
    """Return the message of an operation that runs again, or the end of one that was cancelled."""
    if request.verb is ManyVerb.RETRY:
        return retry_within(connection, id, request.scope, request.actor)[1]
    return cancel_within(connection, id, request.scope, request.actor)[1]
