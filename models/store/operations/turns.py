"""Give the operations of small apps their turns on a queue: models/turns.py has the rule.

An operation that waits for its turn is `pending` and cannot be sent. It is asked about again after
an hour, whatever happens: normally the end of another one of its app gives it the turn, else the
next sweep. An app's turns are counted under its lock, so that no two processes give one twice.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from models.operation import UNSTARTED, OperationState
from models.sql import database_now, is_among, read_each, stands_in
from models.store import ticks
from models.store.operations import RESERVED_FOR
from models.store.operations.outbox import Message
from models.store.ticks import WAITS_TURN
from models.tables import actions, operations, small_apps
from models.turns import GIVEN_OWNER, Turn, capacities, share_of

# A small app and a queue.
Lane = tuple[int, str]

ASKED_AGAIN = timedelta(hours=1)
# A worker unseen for so long is gone.
GONE = timedelta(minutes=1)
WAITS = "waits for its turn: other operations of its small app are before it on this queue"
# Any number: with an app's id, it is the key of the lock in PostgreSQL.
LOCK = 20_261_122
# The condition of the index operations_with_turn.
_HAS_TURN = sa.text(
    "operations.turn = 'taken' AND operations.state IN ('pending', 'queued', 'running')"
)


def is_shared(connection: sa.Connection) -> bool:
    """Return whether several small apps have active actions, beside those given to each."""
    return len(connection.execute(_BUSY_APPS).all()) > 1


# Its first name, found by the index actions_named.
_A_BUSY_ACTION = (
    sa.select(sa.func.min(actions.c.name))
    .where(
        actions.c.small_app_id == small_apps.c.id,
        actions.c.deleted_at.is_(None),
        actions.c.active,
        # Every small app gets a maintenance action.
        sa.func.coalesce(actions.c.owner, "") != GIVEN_OWNER,
    )
    .scalar_subquery()
)
_BUSY_APPS = sa.select(small_apps.c.id).where(_A_BUSY_ACTION.is_not(None)).limit(2)


def admit(connection: sa.Connection, messages: Sequence[Message]) -> list[Message]:
    """Return the messages to send now, of those that the caller has reserved.

    The others wait for their turns. Older operations of the same apps that waited may be among the
    messages instead; they are reserved for the caller as well.
    """
    wanted = {message.id: message.attempt for message in messages}
    found = (
        sa.select(
            operations.c.id,
            operations.c.attempt,
            operations.c.small_app_id,
            operations.c.queue,
            operations.c.turn,
            _IS_BEHIND_ITS_OWN,
        )
        .where(is_among(connection, operations.c.id, list(wanted)))
        .where(stands_in(operations.c.state, UNSTARTED), operations.c.waiting_for.is_(None))
        # What another process is changing is asked about again when its reservation ends.
        .with_for_update(skip_locked=True, key_share=True)
    )
    rows = [row for row in connection.execute(found) if row.attempt == wanted[row.id]]
    having = {row.id for row in rows if row.turn == Turn.TAKEN or row.is_behind_its_own}
    new = [row for row in rows if row.id not in having]
    in_turn = [message for message in messages if message.id in having]
    _write(connection, [one.id for one in in_turn], {"turn": Turn.TAKEN})
    if not new:
        return in_turn
    waits = {"turn": Turn.WAITS, "reason": WAITS, "not_before": database_now(ASKED_AGAIN)}
    _write(connection, [row.id for row in new], waits)
    lanes = {(row.small_app_id, row.queue) for row in new}
    return in_turn + give(connection, lanes, RESERVED_FOR)


# Its claim only decides, by the overlap policy, what becomes of it or of the running one.
_running = operations.alias("running")
_IS_BEHIND_ITS_OWN = (
    sa.exists()
    .where(_running.c.overlap_key == operations.c.overlap_key)
    .where(stands_in(_running.c.state, {OperationState.RUNNING}))
    .label("is_behind_its_own")
)


def _write(connection: sa.Connection, ids: Sequence[UUID], values: dict[str, Any]) -> None:
    if ids:
        those = is_among(connection, operations.c.id, ids)
        connection.execute(sa.update(operations).where(those).values(values))


def lane_behind(connection: sa.Connection, operation_id: UUID) -> Lane | None:
    """Return the app and the queue of an operation, None if nothing waits for a turn there."""
    waiting = operations.alias("waiting")
    waits = sa.exists().where(
        waiting.c.small_app_id == operations.c.small_app_id,
        waiting.c.queue == operations.c.queue,
        sa.text("waiting.turn = 'waits' AND waiting.state IN ('pending', 'queued')"),
    )
    query = sa.select(operations.c.small_app_id, operations.c.queue)
    row = connection.execute(query.where(operations.c.id == operation_id, waits)).one_or_none()
    return None if row is None else (row.small_app_id, row.queue)


def release_free(connection: sa.Connection) -> int:
    """Make what has a turn by now sendable, and all if no app is busy beside; return how many."""
    query = sa.select(operations.c.small_app_id, operations.c.queue).where(WAITS_TURN).distinct()
    lanes = {(row.small_app_id, row.queue) for row in connection.execute(query)}
    if not lanes:
        return 0
    if is_shared(connection):
        return len(give(connection, lanes, timedelta(0)))
    free = {"turn": None, "reason": None, "not_before": database_now()}
    return connection.execute(sa.update(operations).where(WAITS_TURN).values(free)).rowcount


def give(
    connection: sa.Connection, lanes: Collection[Lane], reserved_for: timedelta
) -> list[Message]:
    """Give free turns of these apps and queues to the oldest operations that wait; return those."""
    _lock(connection, sorted({app for app, _ in lanes}))
    rooms = _rooms(connection, lanes)
    rows = [
        {"its_app": app, "its_queue": queue, "room": room}
        for (app, queue), room in sorted(rooms.items())
        if room > 0
    ]
    names = {"its_app": "small_app_id", "its_queue": "queue", "room": "attempt"}
    oldest = read_each(
        connection,
        operations,
        rows,
        names,
        lambda given: (
            sa.select(operations.c.id)
            .where(operations.c.small_app_id == given["its_app"])
            .where(operations.c.queue == given["its_queue"], WAITS_TURN)
            .order_by(operations.c.recorded_at, operations.c.occurrence_at, operations.c.id)
            .limit(given["room"])
            .with_for_update(skip_locked=True, key_share=True)
        ),
    )
    in_order = [row.id for row in oldest]
    if not in_order:
        return []
    taken = {"turn": Turn.TAKEN, "reason": None, "not_before": database_now(reserved_for)}
    changed = (
        sa.update(operations)
        .where(is_among(connection, operations.c.id, in_order))
        .values(taken)
        .returning(operations.c.id, operations.c.attempt, operations.c.task, operations.c.queue)
    )
    messages = [Message(*row) for row in connection.execute(changed)]
    return sorted(messages, key=lambda message: in_order.index(message.id))


def _lock(connection: sa.Connection, apps: Sequence[int]) -> None:
    """Let no other process count the turns of these apps until the transaction ends."""
    if connection.dialect.name != "postgresql":
        # A writing transaction of SQLite is alone.
        return
    given = sa.cast(list(apps), postgresql.ARRAY(sa.Integer))
    ordered = sa.select(sa.func.unnest(given, type_=sa.Integer).label("app"))
    those = ordered.order_by(sa.text("1")).subquery("those")
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK, those.c.app)))


def _rooms(connection: sa.Connection, lanes: Collection[Lane]) -> dict[Lane, int]:
    """Return how many more turns each app may have on each queue."""
    live = ticks.live_workers(connection, GONE)
    slots = capacities((row["queues"], row["slots"]) for row in live if row["follows"] is None)
    apps = [app for app, _ in lanes]
    taken = (
        sa.select(operations.c.small_app_id, operations.c.queue, sa.func.count())
        .where(_HAS_TURN, is_among(connection, operations.c.small_app_id, apps))
        .group_by(operations.c.small_app_id, operations.c.queue)
    )
    counted = {(row[0], row[1]): row[2] for row in connection.execute(taken)}
    return {lane: share_of(slots.get(lane[1], 1)) - counted.get(lane, 0) for lane in lanes}
