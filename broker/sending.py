"""Send reserved rows: publish outside any transaction, then mark what became of each.

Each operation goes by the kind of its workers; notices and backfills go to ours. Celery and the
broker's client are loaded when there is something to send: most commands never do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar
from uuid import UUID

import sqlalchemy as sa

from broker.celery_rules import Application, application_of, has_one_broker
from broker.in_use import settings_in_use
from broker.names import DEFAULT, QUICK
from models.errors import BrokerUnavailable
from models.operation import OperationState
from models.store import notices, pauses
from models.store.notices import Owed
from models.store.operations import reserve
from models.store.operations.end import EndResult
from models.store.operations.reserve import Message
from models.worker_kinds import (
    CELERY,
    DELIVER_NOTICE,
    HTTP,
    METATASK_SCHEDULE,
    OURS,
    WORKER_KINDS,
    WorkerKind,
    worker_kind_of,
)
from runtime.database import DATABASE_AWAY, reading, reason_of, unhurried
from runtime.db_retry import in_transaction
from runtime.logs.events import EventLog

logger = EventLog("minutebook.broker")


@dataclass(frozen=True, slots=True)
class Sent:
    """How many messages were taken, and why our broker took no more.

    `application_error` is that of the Celery application's own broker, if it has one.
    """

    count: int
    error: str | None = None
    application_error: str | None = None


T = TypeVar("T")
Write = Callable[[sa.Connection, Sequence[T]], None]


@dataclass(frozen=True, slots=True)
class _Kind(Generic[T]):
    """The message for a row, and what to write for the rows the broker took or did not take."""

    name: str
    message: Callable[[T], Message]
    took: Write[T]
    left: Write[T]


def send_reserved(engine: sa.Engine, messages: Sequence[Message], error: str | None = None) -> Sent:
    """Send operations that the caller has reserved; never raises if the broker is down.

    Operations that were certainly not sent are released, so that the next tick sends them. What a
    pause covers is left out. `error` is why our broker took nothing a moment ago. While it is down,
    or the application's own one, what needs the other is still sent.
    """
    by_kind: dict[WorkerKind, list[Message]] = {one: [] for one in WORKER_KINDS}
    for one in _not_paused(engine, messages):
        by_kind[worker_kind_of(one.task)].append(one)
    if by_kind[HTTP]:
        # Their workers ask for them.
        _write(engine, reserve.mark_sent, by_kind[HTTP])
    # Those in doubt are sent again, harmlessly.
    ours = _unless(error, engine, by_kind[OURS], lambda its: _send(engine, its, _OPERATIONS))
    application = application_of(settings_in_use())
    is_shared = has_one_broker(settings_in_use())
    known = ours.error if is_shared else None
    hand_over = partial(_hand_over, engine, application)
    theirs = _unless(known, engine, by_kind[CELERY], hand_over)
    count = len(by_kind[HTTP]) + ours.count + theirs.count
    return Sent(count, theirs.error) if is_shared else Sent(count, ours.error, theirs.error)


def _unless(
    error: str | None,
    engine: sa.Engine,
    messages: Sequence[Message],
    send: Callable[[Sequence[Message]], Sent],
) -> Sent:
    """Send messages; release them if an error of their broker is known."""
    if messages and error:
        _write(engine, reserve.release_unsent, messages)
    return send(messages) if messages and not error else Sent(0, error)


def _hand_over(engine: sa.Engine, application: Application, messages: Sequence[Message]) -> Sent:
    """Send tasks of a Celery application one by one: accepted, refused or in doubt."""
    from broker.external_publish import hand_over

    return hand_over(engine, messages, application)


def _not_paused(engine: sa.Engine, messages: Sequence[Message]) -> Sequence[Message]:
    """Return what no pause covers; the first tick after its end sends the rest."""
    if not messages:
        return ()
    with reading(engine) as connection:
        paused = pauses.paused_among(connection, [one.id for one in messages])
    if not paused:
        return messages
    _write(engine, reserve.release_unsent, [one for one in messages if one.id in paused])
    return [one for one in messages if one.id not in paused]


def send_ended(engine: sa.Engine, ended: EndResult | None) -> None:
    """Send what the end of an operation released, and its notices.

    None if nothing ended. Never raises if the broker or the database is down: the end is recorded,
    and the next tick sends.
    """
    if ended is None:
        return
    try:
        _send_released(engine, ended.released)
        send_notices(engine, ended.owed)
    except DATABASE_AWAY as error:
        logger.warning(
            "database_unavailable",
            "database unavailable, the next tick sends: {error}",
            reason_of(error),
        )


def send_started(engine: sa.Engine, owed: Sequence[Owed]) -> None:
    """Send the notices of a start, as `send_ended` does those of an end."""
    if owed:
        send_ended(engine, EndResult(OperationState.RUNNING, [], [*owed]))


def _send_released(engine: sa.Engine, released: Sequence[Message]) -> None:
    """Send operations that no longer wait, in that order, as far as this process is able to."""
    ids = [one.id for one in sendable_here(released)]
    if not ids:
        return
    with engine.begin() as connection:
        messages = reserve.reserve_sendable(connection, len(ids), only=ids)
    messages.sort(key=lambda message: ids.index(message.id))
    send_reserved(engine, messages)


def sendable_here(messages: Sequence[Message]) -> Sequence[Message]:
    """Return what this process is able to send; the tick sends the others.

    Without tasks that may be sent, those of the application would fail.
    """
    if not messages or settings_in_use().celery.tasks:
        return messages
    return [one for one in messages if worker_kind_of(one.task) is not CELERY]


def send_backfills(engine: sa.Engine, ids: Sequence[UUID]) -> Sent:
    """Ask workers to process backfills that the caller has reserved; see `send_reserved`."""
    return _send(engine, ids, _BACKFILLS)


def send_notices(engine: sa.Engine, reserved: Sequence[Owed]) -> Sent:
    """Ask workers to deliver notices that the caller has reserved; see `send_reserved`."""
    return _send(engine, reserved, _NOTICES)


def _send(engine: sa.Engine, rows: Sequence[T], kind: _Kind[T]) -> Sent:
    """Send what the caller has reserved to our workers, and mark what the broker took."""
    if not rows:
        return Sent(0)
    from broker.app import publish

    count = seen = 0
    try:
        for chunk, refused in publish([kind.message(row) for row in rows]):
            its = list(zip(chunk, rows[seen : seen + len(chunk)], strict=True))
            seen += len(chunk)
            taken = [row for message, row in its if message.queue not in refused]
            _write(engine, kind.took, taken)
            count += len(taken)
            for queue, why in refused.items():
                logger.warning(
                    "queue_refuses", "nothing was sent to {queue}: {error}", OURS.listed(queue), why
                )
                _write(engine, kind.left, [row for message, row in its if message.queue == queue])
    except BrokerUnavailable as error:
        unsent = rows[seen:]
        logger.warning(
            "broker_unavailable",
            "broker unavailable, {waiting} {kind} wait: {error}",
            len(unsent),
            kind.name,
            error,
        )
        _write(engine, kind.left, unsent)
        return Sent(count, str(error))
    return Sent(count)


def _write(engine: sa.Engine, write: Write[T], rows: Sequence[T]) -> None:
    in_transaction(engine, lambda connection: write(connection, rows), unhurried)


def _nothing(_connection: sa.Connection, _rows: Sequence[object]) -> None:
    """Write nothing: what is still active when its reservation ends is sent again."""


_OPERATIONS: _Kind[Message] = _Kind(
    "operations",
    lambda message: message,
    reserve.mark_sent,
    reserve.release_unsent,
)
_BACKFILLS: _Kind[UUID] = _Kind(
    "backfills",
    lambda id: Message(id, 1, METATASK_SCHEDULE, DEFAULT),
    _nothing,
    _nothing,
)
_NOTICES: _Kind[Owed] = _Kind(
    "notices",
    lambda one: Message(one.id, one.tries + 1, DELIVER_NOTICE, QUICK),
    notices.mark_sent,
    notices.send_soon,
)
