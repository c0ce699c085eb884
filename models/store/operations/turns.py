"""Give operations their turns on a queue: models/turns.py has the rule.

An operation that waits for its turn is `pending` and cannot be sent. It is asked about again after
an hour, whatever happens: normally the end of another one of its app gives it the turn, else the
next sweep. An app's turns are counted under its lock, so that no two processes give one twice.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from models.job import JOB
from models.many_rows import Columns, read_each
from models.operation import UNSTARTED, OperationState
from models.sql import database_now, is_among, is_still, precedes, stands_in
from models.store import ticks
from models.store.conditions import HAS_TURN, IS_LIVE, WAITS_TURN
from models.store.operations import RESERVED_FOR
from models.store.operations.outbox import MESSAGE, Message, in_order
from models.tables import JOB_TO_TAKE, WITH_PRIORITY, actions, operations, small_apps
from models.turns import GIVEN_OWNER, Sharing, Turn, capacities, share_of

# A small app and a queue.
Lane = tuple[int, str]

ASKED_AGAIN = timedelta(hours=1)
MOST_AHEAD = 1_000
WAITS = "waits for its turn: other operations of its small app are before it on this queue"
# Any number: with an app's id, it is the key of the lock in PostgreSQL.
LOCK = 20_261_122


def sharing(connection: sa.Connection) -> Sharing:
    """Return why operations take turns: priorities, or several small apps with active actions.

    The actions that every small app gets do not count.
    """
    if len(connection.execute(_BUSY_APPS).all()) > 1:
        return Sharing.APPS
    has_priority = connection.execute(_A_PRIORITY).first() is not None
    return Sharing.PRIORITY if has_priority else Sharing.NONE


# Its first name, found by the index actions_named.
_A_BUSY_ACTION = (
    sa.select(sa.func.min(actions.c.name))
    .where(
        actions.c.small_app_id == small_apps.c.id,
        IS_LIVE,
        # Every small app gets a maintenance action.
        sa.func.coalesce(actions.c.owner, "") != GIVEN_OWNER,
    )
    .scalar_subquery()
)
_BUSY_APPS = sa.select(small_apps.c.id).where(_A_BUSY_ACTION.is_not(None)).limit(2)
_A_PRIORITY = (
    sa.select(actions.c.active)
    # Written exactly as in the index actions_with_priority.
    .where(sa.text(WITH_PRIORITY), actions.c.active)
    .limit(1)
)
# The order among those that wait: that of the index operations_waiting_turn.
IN_ORDER = (
    operations.c.ranked_at,
    operations.c.recorded_at,
    operations.c.occurrence_at,
    operations.c.id,
)


def admit(
    connection: sa.Connection, messages: Sequence[Message], shared: Sharing = Sharing.APPS
) -> list[Message]:
    """Return the messages to send now, of those that the caller has reserved.

    The others wait for their turns. Operations of the same apps that waited, and go before them,
    may be among the messages instead; they are reserved for the caller as well.
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
        .where(is_still(operations.c.state, UNSTARTED), operations.c.waiting_for.is_(None))
        # Rows that another process is changing are skipped, and looked at again when their
        # reservation ends.
        .with_for_update(skip_locked=True, key_share=True)
    )
    rows = [row for row in connection.execute(found) if row.attempt == wanted[row.id]]
    # An app alone leaves no process free that could apply the overlap policy at once.
    at_once = {row.id for row in rows if row.is_behind_its_own and shared is Sharing.APPS}
    having = at_once | {row.id for row in rows if row.turn == Turn.TAKEN}
    new = [row for row in rows if row.id not in having]
    in_turn = [message for message in messages if message.id in having]
    _write(connection, [one.id for one in in_turn], {"turn": Turn.TAKEN})
    if not new:
        return in_turn
    waits = {"turn": Turn.WAITS, "reason": WAITS, "not_before": database_now(ASKED_AGAIN)}
    _write(connection, [row.id for row in new], waits)
    lanes = {(row.small_app_id, row.queue) for row in new}
    return in_turn + give(connection, lanes, RESERVED_FOR, shared)


# If so, its claim only applies the overlap policy, to it or to the running one.
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


# A column, not a condition: PostgreSQL would join that with all that waits.
_waiting = (
    sa.select(operations.c.small_app_id.label("its_app"), operations.c.queue.label("its_queue"))
    .where(WAITS_TURN)
    .subquery("waiting_turn")
)
HAS_WAITING = (
    sa.exists()
    .where(_waiting.c.its_app == operations.c.small_app_id)
    .where(_waiting.c.its_queue == operations.c.queue)
    .correlate(operations)
    .label("has_waiting")
)


def lane_behind(connection: sa.Connection, operation_id: UUID) -> Lane | None:
    """Return the app and the queue of an operation, None if nothing waits for a turn there."""
    query = sa.select(operations.c.small_app_id, operations.c.queue, HAS_WAITING)
    row = connection.execute(query.where(operations.c.id == operation_id)).one_or_none()
    return (row.small_app_id, row.queue) if row is not None and row.has_waiting else None


def release_free(connection: sa.Connection) -> int:
    """Make what has a turn by now sendable, and all if no app is busy beside; return how many."""
    query = sa.select(operations.c.small_app_id, operations.c.queue).where(WAITS_TURN).distinct()
    lanes = {(row.small_app_id, row.queue) for row in connection.execute(query)}
    if not lanes:
        return 0
    shared = sharing(connection)
    if shared is not Sharing.NONE:
        return len(give(connection, lanes, timedelta(0), shared))
    free = {"turn": None, "reason": None, "not_before": database_now()}
    return connection.execute(sa.update(operations).where(WAITS_TURN).values(free)).rowcount


def give(
    connection: sa.Connection,
    lanes: Collection[Lane],
    reserved_for: timedelta,
    shared: Sharing | None = None,
) -> list[Message]:
    """Give free turns of these apps and queues to the first operations that wait; return those.

    `shared` is why they take turns, if the caller has asked.
    """
    _lock(connection, sorted({app for app, _ in lanes}))
    rooms = _rooms(connection, lanes, shared or sharing(connection))
    rows = [
        {"its_app": app, "its_queue": queue, "room": room}
        for (app, queue), room in sorted(rooms.items())
        if room > 0
    ]
    names = {"its_app": "small_app_id", "its_queue": "queue", "room": "attempt"}
    first = [row.id for row in read_each(connection, operations, rows, names, _first_waiting)]
    if not first:
        return []
    taken = {"turn": Turn.TAKEN, "reason": None, "not_before": database_now(reserved_for)}
    changed = (
        sa.update(operations)
        .where(is_among(connection, operations.c.id, first))
        .values(taken)
        .returning(*MESSAGE)
    )
    return in_order(connection.execute(changed), first)


def _first_waiting(given: Columns) -> sa.Select[Any]:
    return (
        sa.select(operations.c.id)
        .where(operations.c.small_app_id == given["its_app"])
        .where(operations.c.queue == given["its_queue"], WAITS_TURN)
        .order_by(*IN_ORDER)
        .limit(given["room"])
        .with_for_update(skip_locked=True, key_share=True)
    )


@dataclass(frozen=True, slots=True)
class Ahead:
    """What goes before an operation on its queue, in its small app: at most MOST_AHEAD."""

    count: int
    # The one that goes first.
    first: UUID | None = None
    priority: int = 0


def ahead(connection: sa.Connection, row: sa.RowMapping) -> Ahead:
    """Return what goes before an operation that waits for its turn, or for a worker over HTTP.

    Nothing goes before any other.
    """
    if row["turn"] != Turn.WAITS and row["task"] != JOB:
        return Ahead(0)
    waits = sa.text(JOB_TO_TAKE) if row["task"] == JOB else WAITS_TURN
    query = (
        sa.select(operations.c.id, operations.c.priority)
        .where(operations.c.small_app_id == row["small_app_id"])
        .where(operations.c.queue == row["queue"], waits)
        .where(precedes(IN_ORDER, [row[one.name] for one in IN_ORDER]))
        .order_by(*IN_ORDER)
        .limit(MOST_AHEAD)
    )
    found = connection.execute(query).all()
    return Ahead(len(found), found[0].id, found[0].priority) if found else Ahead(0)


def _lock(connection: sa.Connection, apps: Sequence[int]) -> None:
    """Let no other process count the turns of these apps until the transaction ends."""
    if connection.dialect.name != "postgresql":
        # SQLite has one writing transaction at a time.
        return
    given = sa.cast(list(apps), postgresql.ARRAY(sa.Integer))
    ordered = sa.select(sa.func.unnest(given, type_=sa.Integer).label("app"))
    those = ordered.order_by(sa.text("1")).subquery("those")
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK, those.c.app)))


def _rooms(connection: sa.Connection, lanes: Collection[Lane], shared: Sharing) -> dict[Lane, int]:
    """Return how many more turns each app may have on each queue."""
    live = ticks.live_workers(connection, ticks.GONE)
    ours = ((row["queues"], row["slots"]) for row in live if row["follows"] is None)
    slots = capacities(ours, shared)
    apps = [app for app, _ in lanes]
    taken = (
        sa.select(operations.c.small_app_id, operations.c.queue, sa.func.count())
        .where(HAS_TURN, is_among(connection, operations.c.small_app_id, apps))
        .group_by(operations.c.small_app_id, operations.c.queue)
    )
    counted = {(row[0], row[1]): row[2] for row in connection.execute(taken)}
    return {lane: share_of(slots.get(lane[1], 1), shared) - counted.get(lane, 0) for lane in lanes}
