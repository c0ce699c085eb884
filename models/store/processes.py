"""Read which operations hold the processes of our workers, or are on their way to one."""

from collections.abc import Iterable

import sqlalchemy as sa

from models.job import JOB
from models.operation import UNSTARTED
from models.sql import stands_in
from models.store import ticks
from models.store.conditions import HAS_TURN, IS_RUNNING
from models.tables import operations
from models.turns import Held, Line, Worker, line_of


def our_workers(connection: sa.Connection) -> list[Worker]:
    """Return the live workers that take operations from the broker, with their queues."""
    return [
        Worker(row["name"], frozenset(map(str.strip, row["queues"].split(","))), row["slots"])
        for row in ticks.live_workers(connection, ticks.GONE)
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
    # Workers of other kinds run the others.
    .where(IS_RUNNING, operations.c.task != JOB, operations.c.in_doubt.is_(None))
    .group_by(operations.c.small_app_id, operations.c.queue, operations.c.worker)
)
# By one statement, so that an operation that starts meanwhile is counted once.
_HELD = sa.union_all(_SENT, _RUNNING)
