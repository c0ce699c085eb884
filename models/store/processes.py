"""Read which operations hold the processes of our workers, or are on their way to one."""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from models.carriers import OURS, carrier_of
from models.operation import UNSTARTED, OperationState
from models.sql import stands_in
from models.store import presence
from models.store.conditions import HAS_TURN, IS_RUNNING
from models.tables import actions, operations
from models.turns import NOBODY, Held, Holder, Holders, Line, Worker, line_of


def our_workers(connection: sa.Connection) -> list[Worker]:
    """Return the live workers that take operations from the broker, with their queues."""
    return [
        Worker(row["name"], frozenset(map(str.strip, row["queues"].split(","))), row["slots"])
        for row in presence.live_workers(connection, presence.GONE)
        if row["follows"] is None and row["slots"]
    ]


def lines_of(connection: sa.Connection, queues: Iterable[str], reserve: int) -> dict[str, Line]:
    """Return what can be had of each queue now."""
    workers = our_workers(connection)
    held = [
        Held(row.app, row.queue, row.worker and row.worker.rpartition(":")[0], row.number)
        for row in connection.execute(_HELD)
    ]
    return {queue: line_of(queue, workers, held, reserve) for queue in sorted(queues)}


_number = sa.func.count().label("number")
_app = operations.c.small_app_id.label("app")
_SENT = (
    sa.select(_app, operations.c.queue, sa.null().label("worker"), _number)
    .where(HAS_TURN, stands_in(operations.c.state, UNSTARTED))
    .group_by(operations.c.small_app_id, operations.c.queue)
)
_RUNNING = (
    sa.select(_app, operations.c.queue, operations.c.worker, _number)
    .where(IS_RUNNING, stands_in(operations.c.task, OURS.tasks))
    .group_by(operations.c.small_app_id, operations.c.queue, operations.c.worker)
)
# By one statement, so that an operation that starts meanwhile is counted once.
_HELD = sa.union_all(_SENT, _RUNNING)


def holders_of(connection: sa.Connection, row: Mapping[Any, Any]) -> Holders:
    """Return what holds the place of an unstarted operation, nothing if nothing is known to.

    That is the operation that must end first, or those that hold the processes of its queue.
    """
    if row["waiting_for"] is not None:
        found = connection.execute(_HOLDING.where(operations.c.id == row["waiting_for"])).all()
        return Holders(tuple(_holder(one) for one in found))
    if carrier_of(row["task"]) is not OURS:
        # Workers of other kinds have no known number of processes.
        return NOBODY
    ours = {one.name for one in our_workers(connection) if row["queue"] in one.queues}
    running = connection.execute(_HOLDING.where(IS_RUNNING).order_by(operations.c.started_at)).all()
    found = [one for one in running if one.worker and one.worker.rpartition(":")[0] in ours]
    own = [one for one in found if one.small_app_id == row["small_app_id"]]
    return Holders(tuple(_holder(one) for one in own), len(found) - len(own))


_HOLDING: sa.Select[Any] = sa.select(
    operations.c.id,
    operations.c.small_app_id,
    operations.c.state,
    operations.c.started_at,
    operations.c.worker,
    actions.c.name,
).join(actions, actions.c.uid == operations.c.action_uid)


def _holder(row: sa.Row[Any]) -> Holder:
    is_running = row.state == OperationState.RUNNING
    since, worker = (row.started_at, row.worker) if is_running else (None, None)
    return Holder(row.id, row.name, row.state, since, worker)
