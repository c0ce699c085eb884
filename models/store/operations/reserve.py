"""The outbox: query sendable operations, and record what the broker accepted.

A pending or queued row may be (re)sent from `not_before` on, by the database's clock. Sending
happens outside these transactions.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import given, locked
from models.operation import UNSTARTED, OperationState
from models.sql import database_now, in_literals, in_unindexed
from models.store.operations import RESERVED_FOR
from models.store.operations.transitions import SENT_ONCE_MORE, becomes
from models.store.pauses import is_paused
from models.tables import SENDABLE, operations
from models.worker_kinds import OURS

RESENDS = tuple(timedelta(minutes=minutes) for minutes in (5, 10, 20, 40))
LONGEST_RESEND = timedelta(hours=1)
# A message that a worker has taken is claimed by then.
LOST_AFTER = timedelta(seconds=30)
# An operation's not_before and id.
Place = tuple[datetime, UUID]


class Message(NamedTuple):
    """What Celery gets: (id, attempt) as arguments, the id as task id."""

    id: UUID
    attempt: int
    task: str
    queue: str


# The conditions of what may be sent, once it is due.
READY: tuple[Any, ...] = (
    sa.text(SENDABLE),
    # A message to the user's own application may have been accepted: external_send.py.
    operations.c.send_started_at.is_(None),
    sa.not_(is_paused(operations.c)),
)
# The columns of a message.
MESSAGE = (operations.c.id, operations.c.attempt, operations.c.task, operations.c.queue)


def reserve_sendable(
    connection: sa.Connection,
    limit: int,
    by: datetime | None = None,
    *,
    only: Collection[UUID] | None = None,
    to_ours: bool = True,
) -> list[Message]:
    """Reserve up to `limit` operations for 30 s that were sendable at the instant `by`.

    Oldest first, of `only` these ids; without `by`, what is sendable now. The caller commits
    before it sends. Unless `to_ours`, those of our own workers are left out.
    """
    ready = list(READY)
    if only is not None:
        ready.append(operations.c.id.in_(only))
    if not to_ours:
        ready.append(operations.c.task.not_in(sorted(OURS.tasks)))
    return [Message(*row) for row in reserve_rows(connection, MESSAGE, ready, limit, by)]


def reserve_rows(
    connection: sa.Connection,
    shown: Sequence[sa.Column[Any]],
    ready: Sequence[Any],
    limit: int,
    by: datetime | None = None,
) -> Sequence[Any]:
    """Reserve up to `limit` ready rows for 30 s that were due at `by` (None: now), oldest first.

    Returns the columns `shown`, the first of which is the table's key.
    """
    key = shown[0]
    not_before = key.table.c.not_before
    those = (
        sa.select(key)
        .where(*ready, not_before <= (database_now() if by is None else by))
        .order_by(not_before)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    reserved = sa.update(key.table).where(key.in_(those.scalar_subquery()))
    later = reserved.values(not_before=database_now(RESERVED_FOR))
    return connection.execute(later.returning(*shown)).all()


def mark_sent(connection: sa.Connection, messages: Sequence[Message]) -> None:
    """Mark accepted messages as queued, if they are still unstarted in that attempt.

    They may be sent again after 5 minutes, doubling to 1 hour: a repeated message is harmless.
    """
    connection.execute(_SENT, {"given": _rows(messages)})


def release_unsent(connection: sa.Connection, messages: Sequence[Message]) -> None:
    """Release the reservation of messages that the broker may lack: the next tick sends them."""
    connection.execute(_RELEASED, {"given": _rows(messages)})


class Queued(NamedTuple):
    """The operations of a queue of ours that the broker took, and no worker has claimed."""

    queue: str
    # How many were sent once, over `LOST_AFTER` ago.
    silent: int
    # How many would be sent again now.
    due: int

    def is_lost(self, depth: int | None, read: Collection[str]) -> bool:
        """Return whether messages were lost: a queue that a live worker reads is empty."""
        return bool(self.silent) and depth == 0 and OURS.listed(self.queue) in read

    def waits(self, depth: int | None) -> bool:
        """Return whether some are due that may wait in their queue still."""
        return bool(self.due and depth)


_IN_THE_BROKER = (
    sa.text(SENDABLE),
    in_literals(operations.c.state, {OperationState.QUEUED}),
    in_literals(operations.c.task, OURS.tasks),
)
# By depth, a message is sent again at most once in an attempt, and not while it is paused.
_IS_SILENT = sa.and_(
    operations.c.sendings <= 1,
    operations.c.sent_at < database_now(-LOST_AFTER),
    sa.not_(is_paused(operations.c)),
)
_IS_DUE = operations.c.not_before <= database_now()
_QUEUED = (
    sa.select(
        operations.c.queue,
        sa.func.count(sa.case((_IS_SILENT, 1))),
        sa.func.count(sa.case((_IS_DUE, 1))),
    )
    .where(*_IN_THE_BROKER)
    .group_by(operations.c.queue)
)


def queued(connection: sa.Connection) -> list[Queued]:
    """Return what waits in our queues in the broker, by queue."""
    return [Queued(*row) for row in connection.execute(_QUEUED)]


def release_lost(connection: sa.Connection, queue: str, limit: int) -> int:
    """Let up to `limit` silent operations of a queue be sent again now; return how many."""
    is_lost = sa.and_(_IS_SILENT, operations.c.not_before > database_now())
    return _resend(connection, queue, limit, is_lost, database_now())


def oldest_waiting(connection: sa.Connection, queue: str, depth: int) -> datetime | None:
    """Return when the oldest of the `depth` messages in a queue was sent; None for all.

    Workers take the oldest first: what waits was sent last.
    """
    newest = sa.select(operations.c.sent_at).where(operations.c.queue == queue, *_IN_THE_BROKER)
    oldest = newest.order_by(operations.c.sent_at.desc()).offset(depth - 1).limit(1)
    return connection.execute(oldest).scalar()


def put_off(connection: sa.Connection, queue: str, limit: int, since: datetime | None) -> int:
    """Put off sending again what was sent since then, some at a time; return how many.

    What was sent over an hour ago is sent again: other messages may count in its place.
    """
    waits = [_IS_DUE, operations.c.sent_at > database_now(-LONGEST_RESEND)]
    waits += [] if since is None else [operations.c.sent_at >= since]
    return _resend(connection, queue, limit, sa.and_(*waits), database_now(RESENDS[0]))


def _resend(
    connection: sa.Connection,
    queue: str,
    limit: int,
    which: sa.ColumnElement[bool],
    at: sa.ColumnElement[Any],
) -> int:
    """Let some of a queue be sent again at an instant; return how many.

    What another process has locked is left out: it is being claimed or sent.
    """
    those = (
        sa.select(operations.c.id)
        .where(operations.c.queue == queue, *_IN_THE_BROKER, which)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    later = sa.update(operations).where(operations.c.id.in_(those.scalar_subquery()))
    return connection.execute(later.values(not_before=at)).rowcount


def _rows(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [{"id": one.id, "attempt": one.attempt} for one in messages]


_MESSAGES = given(operations, "id", "attempt")
# Found by id: for a list of pairs, SQLite reads the whole table, and PostgreSQL plans one condition
# each.
_UNSTARTED = (
    operations.c.attempt == _MESSAGES.c.attempt,
    in_unindexed(operations.c.state, UNSTARTED),
    # Else a worker has claimed it meanwhile, and it waits for another operation.
    operations.c.waiting_for.is_(None),
)
_TO_RELEASE = locked(operations, _MESSAGES, *_UNSTARTED)
# What is paused may have been put back already by its take: then it has no message.
_TO_MARK = locked(operations, _MESSAGES, *_UNSTARTED, sa.not_(is_paused(operations.c)))


_NEXT_RESEND = sa.case(
    {sendings: span.total_seconds() for sendings, span in enumerate(RESENDS)},
    value=operations.c.sendings,
    else_=LONGEST_RESEND.total_seconds(),
)
_SENT_NOW = becomes(
    OperationState.QUEUED,
    UNSTARTED,
    not_before=database_now(_NEXT_RESEND),
    sendings=SENT_ONCE_MORE,
)
_SENT = sa.update(operations).where(operations.c.id == _TO_MARK.c.id).values(_SENT_NOW)
_RELEASED = (
    sa.update(operations)
    .where(operations.c.id == _TO_RELEASE.c.id)
    .values(not_before=database_now())
)
