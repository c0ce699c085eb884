"""Retry or cancel many operations on request; each is done wholly or not at all."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import takewhile
from typing import Any, Self
from uuid import UUID

import sqlalchemy as sa

from broker.sending import Sent, send_ended, send_reserved
from models.errors import Refused
from models.operation import RETRIABLE, UNSTARTED, OperationState
from models.store import operations
from models.store.actions import cursors
from models.store.operations.end import EndResult
from models.store.operations.reserve import Message
from models.store.scope import Scope
from runtime.db_retry import in_transaction
from scheduler.on_demand.cancel import cancel_within
from scheduler.on_demand.restart import repeat, runnable_plan

# The operations of one transaction; an action is locked while its own run again.
TOGETHER = 50
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
class Progress:
    """What is left of a request: pairs of an action and its operation, those of one together.

    `left_out` has the reason of each operation that it did not change. `next` is the last operation
    that it looked at, if others match as well.
    """

    rest: tuple[tuple[UUID, UUID], ...]
    changed: tuple[UUID, ...] = ()
    left_out: Mapping[UUID, str] = field(default_factory=dict)
    next: UUID | None = None

    def after(self, count: int, changed: Iterable[UUID], left_out: Mapping[UUID, str]) -> Self:
        """Return the progress once the first `count` of the rest are worked off."""
        rest, both = self.rest[count:], {**self.left_out, **left_out}
        return type(self)(rest, (*self.changed, *changed), both, self.next)


@dataclass(slots=True)
class _Did:
    """What one transaction did, and what to send now that it has ended."""

    changed: list[UUID] = field(default_factory=list)
    left_out: dict[UUID, str] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    ended: list[EndResult] = field(default_factory=list)


def why_left_out(
    verb: ManyVerb, row: Mapping[str, Any] | None, action: sa.Row[Any] | None
) -> str | None:
    """Return why an operation of this action cannot be changed so; None if it can."""
    if row is None:
        return GONE
    if row["state"] not in TAKES[verb]:
        return f"it is {row['state']}"
    if verb is ManyVerb.CANCEL:
        return "it was already asked to end" if row["cancel_requested_at"] else None
    if action is None:
        return GONE
    try:
        runnable_plan(action)
    except Refused as error:
        return error.fact
    return None


def planned(connection: sa.Connection, verb: ManyVerb, progress: Progress) -> Progress:
    """Return how a request would end, with nothing changed."""
    ids = [id for _, id in progress.rest]
    rows = {row["id"]: row for row in operations.by_ids(connection, ids)}
    found = cursors.seen(connection, list({uid for uid, _ in progress.rest}))
    reasons = {id: why_left_out(verb, rows.get(id), found.get(uid)) for uid, id in progress.rest}
    changed = [id for id in ids if reasons[id] is None]
    return progress.after(len(ids), changed, {id: why for id, why in reasons.items() if why})


def change_many(
    engine: sa.Engine, request: ManyRequest, progress: Progress
) -> tuple[Progress, Sent]:
    """Work off a request in short transactions, and send what runs again after each.

    Return how it ended, and what was sent.
    """
    count, error = 0, None
    while progress.rest:
        uid, ids = _next(progress, request.verb)
        did = in_transaction(engine, partial(_change, request=request, uid=uid, ids=ids))
        progress = progress.after(len(ids), did.changed, did.left_out)
        sent = send_reserved(engine, did.messages)
        count, error = count + sent.count, error or sent.error
        for ended in did.ended:
            send_ended(engine, ended)
    return progress, Sent(count, error)


def _next(progress: Progress, verb: ManyVerb) -> tuple[UUID, list[UUID]]:
    """Return the operations to change together, and their action: one to cancel, else several."""
    uid = progress.rest[0][0]
    its = takewhile(lambda pair: pair[0] == uid, progress.rest)
    most = 1 if verb is ManyVerb.CANCEL else TOGETHER
    return uid, [id for _, id in its][:most]


def _change(
    connection: sa.Connection, request: ManyRequest, uid: UUID, ids: Sequence[UUID]
) -> _Did:
    if request.verb is ManyVerb.CANCEL:
        return _cancel(connection, request, ids)
    return _repeat(connection, request, uid, ids)


def _repeat(
    connection: sa.Connection, request: ManyRequest, uid: UUID, ids: Sequence[UUID]
) -> _Did:
    action, did = cursors.lock(connection, uid), _Did()
    for id, row in _rows(connection, ids):
        why = why_left_out(request.verb, row, action)
        if row is None or why is not None:
            did.left_out[id] = why or GONE
            continue
        try:
            _, message = repeat(connection, action, row, request.actor)
        except Refused:
            did.left_out[id] = MOVED
        else:
            did.changed.append(id)
            did.messages.append(message)
    return did


def _cancel(connection: sa.Connection, request: ManyRequest, ids: Sequence[UUID]) -> _Did:
    did = _Did()
    for id, row in _rows(connection, ids):
        why, found = why_left_out(request.verb, row, None), None
        if why is None:
            try:
                found = cancel_within(connection, id, request.scope, request.actor)
            except Refused as error:
                why = error.fact
        if found is None:
            did.left_out[id] = why or MOVED
        else:
            did.changed.append(id)
            did.ended += [] if found[1] is None else [found[1]]
    return did


def _rows(
    connection: sa.Connection, ids: Sequence[UUID]
) -> Iterable[tuple[UUID, dict[str, Any] | None]]:
    found = {row["id"]: row for row in operations.by_ids(connection, ids)}
    return [(id, found.get(id)) for id in ids]
