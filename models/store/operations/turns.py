"""Give operations their turns on a queue: models/turns.py has the rule.

An operation that waits for its turn is `pending` and cannot be sent. It is asked about again after
an hour, whatever happens: normally the end of another one on its queue gives it the turn, else the
next sweep. A queue's turns are counted under its lock, so that no two processes give one twice.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID
from zlib import crc32

import sqlalchemy as sa

from models.carriers import HTTP, carrier_of
from models.many_rows import Columns, read_each
from models.operation import UNSTARTED, OperationState
from models.sql import database_now, is_among, is_still, precedes, stands_in
from models.store.conditions import IS_LIVE, WAITS_TURN
from models.store.operations import RESERVED_FOR
from models.store.operations.outbox import MESSAGE, Message, in_order
from models.store.processes import holders_of, lines_of, our_workers
from models.tables import JOB_TO_TAKE, WITH_PRIORITY, actions, operations, small_apps
from models.turns import GIVEN_OWNER, NOBODY, Holders, Line, Sharing, Turn, next_turns

# A small app and a queue.
Lane = tuple[int, str]

ASKED_AGAIN = timedelta(hours=1)
MOST_AHEAD = 1_000
WAITS = "waits for its turn: others hold the processes of its queue"
# Any number: with a queue's digest, it is the key of the lock in PostgreSQL.
LOCK = 20_261_122


def sharing(connection: sa.Connection) -> Sharing:
    """Return why operations take turns: priorities, or several small apps with active actions.

    The actions that every small app gets do not count.
    """
    busy_apps, has_priority = connection.execute(_SHARED).one()
    if busy_apps > 1:
        return Sharing.APPS
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
# One statement: each batch that is sent asks it.
_SHARED = sa.select(
    sa.select(sa.func.count()).select_from(_BUSY_APPS.subquery()).scalar_subquery(),
    _A_PRIORITY.exists(),
)
# The order among those that wait: that of the index operations_waiting_turn.
IN_ORDER = (
    operations.c.ranked_at,
    operations.c.recorded_at,
    operations.c.occurrence_at,
    operations.c.id,
)


def admit(
    connection: sa.Connection,
    messages: Sequence[Message],
    shared: Sharing = Sharing.APPS,
    reserve: int = 0,
) -> list[Message]:
    """Return the messages to send now, of those that the caller has reserved.

    The others wait for their turns. Operations that waited, and go before them, may be among the
    messages instead; they are reserved for the caller as well.
    """
    wanted = {message.id: message.attempt for message in messages}
    columns = (operations.c.id, operations.c.attempt, operations.c.queue, operations.c.turn)
    found = (
        sa.select(*columns, _IS_BEHIND_ITS_OWN)
        .where(is_among(connection, operations.c.id, list(wanted)))
        .where(is_still(operations.c.state, UNSTARTED), operations.c.waiting_for.is_(None))
        # Rows that another process is changing are skipped, and looked at again when their
        # reservation ends.
        .with_for_update(skip_locked=True, key_share=True)
    )
    rows = [row for row in connection.execute(found) if row.attempt == wanted[row.id]]
    kept = _reserve(shared, reserve)
    # The running one may hold the last process that the reserve leaves to its app.
    at_once = {row.id for row in rows if kept and row.is_behind_its_own}
    having = at_once | {row.id for row in rows if row.turn == Turn.TAKEN}
    new = [row for row in rows if row.id not in having]
    _write(connection, at_once, {"turn": Turn.TAKEN})
    in_turn = [message for message in messages if message.id in having]
    if not new:
        return in_turn
    waits = {"turn": Turn.WAITS, "reason": WAITS, "not_before": database_now(ASKED_AGAIN)}
    _write(connection, [row.id for row in new], waits)
    return in_turn + _give(connection, {row.queue for row in new}, RESERVED_FOR, kept)


# If so, its claim only applies the overlap policy, to it or to the running one.
_running = operations.alias("running")
_IS_BEHIND_ITS_OWN = (
    sa.exists()
    .where(_running.c.overlap_key == operations.c.overlap_key)
    .where(stands_in(_running.c.state, {OperationState.RUNNING}))
    .label("is_behind_its_own")
)


def _write(connection: sa.Connection, ids: Collection[UUID], values: dict[str, Any]) -> None:
    if ids:
        those = is_among(connection, operations.c.id, ids)
        connection.execute(sa.update(operations).where(those).values(values))


def _reserve(shared: Sharing, reserve: int) -> int:
    """Return how many processes of a queue each app leaves free: none if it is alone."""
    return reserve if shared is Sharing.APPS else 0


# The first one by the index operations_waiting_turn, which only its first column makes SQLite use.
_waiting = (
    sa.select(operations.c.id)
    .where(WAITS_TURN, operations.c.small_app_id >= sa.literal_column("0"))
    .subquery("waiting_turn")
)
HAS_WAITING = sa.exists(sa.select(_waiting.c.id)).label("has_waiting")


def lane_behind(connection: sa.Connection, operation_id: UUID) -> Lane | None:
    """Return the app and the queue of an operation, None if nothing waits for a turn."""
    query = sa.select(operations.c.small_app_id, operations.c.queue, HAS_WAITING)
    row = connection.execute(query.where(operations.c.id == operation_id)).one_or_none()
    return (row.small_app_id, row.queue) if row is not None and row.has_waiting else None


def release_free(connection: sa.Connection, reserve: int = 0) -> int:
    """Make what has a turn by now sendable, and all if no app is busy beside; return how many."""
    queues = set(
        connection.execute(sa.select(operations.c.queue).where(WAITS_TURN).distinct()).scalars()
    )
    if not queues:
        return 0
    shared = sharing(connection)
    if shared is not Sharing.NONE:
        return len(_give(connection, queues, timedelta(0), _reserve(shared, reserve)))
    free = {"turn": None, "reason": None, "not_before": database_now()}
    return connection.execute(sa.update(operations).where(WAITS_TURN).values(free)).rowcount


def give_after(connection: sa.Connection, lane: Lane, reserve: int = 0) -> list[Message]:
    """Give the turns that an end on that queue freed, reserved for the caller; return those."""
    app, queue = lane
    shared_with = (one.queues for one in our_workers(connection) if queue in one.queues)
    queues = {queue}.union(*shared_with)
    kept = _reserve(sharing(connection), reserve) if reserve else 0
    return _give(connection, queues, RESERVED_FOR, kept, app)


def _give(
    connection: sa.Connection,
    queues: Collection[str],
    reserved_for: timedelta,
    reserve: int,
    after: int = 0,
) -> list[Message]:
    """Give free turns of these queues to the first operations that wait; return those."""
    lanes = _lanes(connection, queues)
    if not lanes:
        return []
    _lock(connection, {queue for _, queue in lanes})
    lines = lines_of(connection, {queue for _, queue in lanes}, reserve)
    first = _first_of(connection, lanes, lines)
    given = [
        id for queue, line in lines.items() for id in next_turns(line, first.get(queue, {}), after)
    ]
    if not given:
        return []
    taken = {"turn": Turn.TAKEN, "reason": None, "not_before": database_now(reserved_for)}
    still = (
        sa.select(operations.c.id)
        .where(is_among(connection, operations.c.id, given))
        .where(is_still(operations.c.turn, {Turn.WAITS}), is_still(operations.c.state, UNSTARTED))
        .with_for_update(skip_locked=True, key_share=True)
    )
    changed = sa.update(operations).where(operations.c.id.in_(still.scalar_subquery()))
    return in_order(connection.execute(changed.values(taken).returning(*MESSAGE)), given)


def _lanes(connection: sa.Connection, queues: Collection[str]) -> list[Lane]:
    """Return the small apps that wait on these queues."""
    asked = [{"its_queue": queue} for queue in sorted(queues)]
    rows = read_each(connection, operations, asked, {"its_queue": "queue"}, _waiting_apps)
    return [(row.app, row.queue) for row in rows]


def _waiting_apps(given: Columns) -> sa.Select[Any]:
    # Not an `exists`: PostgreSQL would join that with all that waits.
    first = sa.select(sa.func.min(operations.c.ranked_at)).where(
        operations.c.small_app_id == small_apps.c.id,
        operations.c.queue == given["its_queue"],
        WAITS_TURN,
    )
    apps = sa.select(small_apps.c.id.label("app"), given["its_queue"].label("queue"))
    return apps.where(first.correlate_except(operations).scalar_subquery().is_not(None))


def _first_of(
    connection: sa.Connection, lanes: Sequence[Lane], lines: Mapping[str, Line]
) -> dict[str, dict[int, list[UUID]]]:
    """Return the first operations that wait, as many as could have a turn, by queue and app."""
    asked = [
        {"its_app": app, "its_queue": queue, "room": room}
        for app, queue in lanes
        if (room := lines[queue].may_have(app))
    ]
    names = {"its_app": "small_app_id", "its_queue": "queue", "room": "attempt"}
    found: dict[str, dict[int, list[UUID]]] = {}
    for row in read_each(connection, operations, asked, names, _first_waiting):
        found.setdefault(row.queue, {}).setdefault(row.small_app_id, []).append(row.id)
    return found


def _first_waiting(given: Columns) -> sa.Select[Any]:
    return (
        sa.select(operations.c.id, operations.c.small_app_id, operations.c.queue)
        .where(operations.c.small_app_id == given["its_app"])
        .where(operations.c.queue == given["its_queue"], WAITS_TURN)
        .order_by(*IN_ORDER)
        .limit(given["room"])
    )


@dataclass(frozen=True, slots=True)
class Ahead:
    """What goes before an operation on its queue, in its small app: at most MOST_AHEAD.

    And what holds its place now.
    """

    count: int
    # The one that goes first.
    first: UUID | None = None
    priority: int = 0
    holders: Holders = NOBODY


def ahead(connection: sa.Connection, row: Mapping[Any, Any]) -> Ahead:
    """Return what an unstarted operation waits for.

    Something goes before one that waits for its turn, or for a worker over HTTP.
    """
    held = holders_of(connection, row)
    waits_to_be_taken = carrier_of(row["task"]) is HTTP
    if row["turn"] != Turn.WAITS and not waits_to_be_taken:
        return Ahead(0, holders=held)
    waits = sa.text(JOB_TO_TAKE) if waits_to_be_taken else WAITS_TURN
    query = (
        sa.select(operations.c.id, operations.c.priority)
        .where(operations.c.small_app_id == row["small_app_id"])
        .where(operations.c.queue == row["queue"], waits)
        .where(precedes(IN_ORDER, [row[one.name] for one in IN_ORDER]))
        .order_by(*IN_ORDER)
        .limit(MOST_AHEAD)
    )
    found = connection.execute(query).all()
    if not found:
        return Ahead(0, holders=held)
    return Ahead(len(found), found[0].id, found[0].priority, held)


def _lock(connection: sa.Connection, queues: Iterable[str]) -> None:
    """Let no other process count the turns of these queues until the transaction ends."""
    if connection.dialect.name != "postgresql":
        # SQLite has one writing transaction at a time.
        return
    # As signed numbers, which the lock takes.
    keys = {crc32(queue.encode()) - 2**31 for queue in queues}
    given = sa.cast(sorted(keys), sa.ARRAY(sa.Integer))
    ordered = sa.select(sa.func.unnest(given, type_=sa.Integer).label("queue"))
    those = ordered.order_by(sa.text("1")).subquery("those")
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK, those.c.queue)))
