"""The outbox is a query: which operations may be sent now, and what the broker took.

`not_before`, by the database's clock, says when a row in pending or queued may be (re)sent.
Nothing here is inside a transaction with the sending.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import UNSTARTED, OperationState
from models.sql import Change, Columns, database_now, stands_in, update_each
from models.store import ticks
from models.store.operations import RESERVED_FOR
from models.store.operations.move import becomes
from models.tables import operations

FIRST_RESEND = timedelta(minutes=5)
# 5, 10, 20, 40 minutes, then hourly.
MOST_DOUBLINGS = 3
LONGEST_RESEND = timedelta(hours=1)
LONG_AGO = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class Message:
    """What Celery gets: (id, attempt) as arguments, the id as task id."""

    id: UUID
    attempt: int
    task: str
    queue: str


def reserve_sendable(
    connection: sa.Connection, limit: int, only: Collection[UUID] | None = None
) -> list[Message]:
    """Reserve up to `limit` operations that may be sent now, for 30 s, the oldest first.

    `only` restricts it to these. The caller commits before it sends.
    """
    ready = (
        sa.select(operations.c.id)
        .where(sa.text("state IN ('pending', 'queued') AND waiting_for IS NULL"))
        .where(operations.c.not_before <= database_now())
        # What is on its way to the user's own application may have been taken: store/handing.py.
        .where(operations.c.handing_at.is_(None))
        .order_by(operations.c.not_before)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    if only is not None:
        ready = ready.where(operations.c.id.in_(only))
    reserved = (
        sa.update(operations)
        .where(operations.c.id.in_(ready.scalar_subquery()))
        .values(not_before=database_now(RESERVED_FOR))
        .returning(operations.c.id, operations.c.attempt, operations.c.task, operations.c.queue)
    )
    return [Message(*row) for row in connection.execute(reserved)]


def mark_sent(connection: sa.Connection, messages: Sequence[Message]) -> None:
    """Mark as queued what the broker took, where it still stands in that attempt, unstarted.

    It may be sent again in 5 minutes, doubling to 1 hour: a repeated message is harmless.
    """
    doublings = sa.case(
        (operations.c.sendings > MOST_DOUBLINGS, LONGEST_RESEND.total_seconds()),
        else_=FIRST_RESEND.total_seconds() * _power_of_two(operations.c.sendings),
    )
    sent = {"not_before": database_now(doublings), "sendings": operations.c.sendings + 1}
    _change_unstarted(connection, messages, becomes(OperationState.QUEUED, UNSTARTED, **sent))


def release_unsent(connection: sa.Connection, messages: Sequence[Message]) -> None:
    """Give back the reservation of what the broker may not have taken: the next tick sends it."""
    _change_unstarted(connection, messages, {"not_before": database_now()})


def release_lost(connection: sa.Connection) -> int:
    """Let what the broker took and no worker started be sent again now; return how many."""
    lost = (
        sa.update(operations)
        .where(*_OF_OURS_IN_THE_BROKER, operations.c.not_before > database_now())
        .values(not_before=database_now())
    )
    return connection.execute(lost).rowcount


def queues_in_use(connection: sa.Connection) -> set[str]:
    """Return the queues of our workers in which the broker has messages."""
    # A condition that always holds: by it both stores take the index of what is to be sent.
    at_any_time = operations.c.not_before > database_now(-LONG_AGO)
    query = sa.select(operations.c.queue).distinct().where(*_OF_OURS_IN_THE_BROKER, at_any_time)
    return set(connection.execute(query).scalars())


# What is sent to the user's own application is never sent again: store/handing.py.
_OF_OURS_IN_THE_BROKER = (
    sa.text("state IN ('pending', 'queued') AND waiting_for IS NULL"),
    stands_in(operations.c.state, {OperationState.QUEUED}),
    operations.c.handing_at.is_(None),
)


def release_after_clock(connection: sa.Connection, ahead: timedelta) -> None:
    """Let what waits be sent at once if the database's clock was ahead by more than `ahead`.

    Else it would wait until that clock's instants come: for an hour, or a year. A message sent
    anew is harmless; a backoff is cut short.
    """
    connection.execute(
        sa.update(operations)
        .where(stands_in(operations.c.state, UNSTARTED), operations.c.not_before > database_now())
        .where(ticks.clock_was_ahead(ahead))
        # What is being sent keeps its reservation: nobody must think it doubtful too soon.
        .values(
            not_before=sa.case(
                (operations.c.handing_at.is_(None), database_now()),
                else_=database_now(RESERVED_FOR),
            )
        )
    )


def _change_unstarted(
    connection: sa.Connection, messages: Sequence[Message], values: Mapping[str, Any]
) -> None:
    """Change these operations where they still stand in that attempt, unstarted.

    Each is found by its id: a list of pairs makes SQLite read the whole table, and PostgreSQL plan
    one condition for each.
    """
    rows = [{"its_id": message.id, "its_attempt": message.attempt} for message in messages]

    def stands(row: Columns, given: Columns) -> list[sa.ColumnElement[bool]]:
        unstarted = stands_in(row["state"], UNSTARTED)
        return [row["id"] == given["its_id"], row["attempt"] == given["its_attempt"], unstarted]

    names = {"its_id": "id", "its_attempt": "attempt"}
    update_each(connection, operations, rows, names, Change(stands, lambda _: values))


def _power_of_two(exponent: sa.ColumnElement[int]) -> sa.ColumnElement[float]:
    # SQLite may be built without power().
    return sa.case((exponent == 0, 1.0), (exponent == 1, 2.0), (exponent == 2, 4.0), else_=8.0)
