"""Store which workers live, the queues that they read, and the tasks that they follow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from models.carriers import CELERY, OURS
from models.celery_task import Signatures
from models.sql import database_now, dicts, insert_ignoring
from models.tables import workers

# A worker that was not seen for this long is gone.
GONE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Seen:
    """A live worker, its comma-separated queues, and by how much its clock is ahead."""

    name: str
    queues: str
    pid: int
    skew_s: float | None = None
    # The user's tasks that it follows; None for a Minutebook worker.
    follows: Sequence[str] | None = None
    # How many operations a Minutebook worker runs at once.
    slots: int | None = None
    # The parameters of the tasks that it follows, as far as it says them.
    signatures: Mapping[str, Sequence[str]] = field(default_factory=dict)


def beat(connection: sa.Connection, worker: Seen) -> None:
    """Record that a worker is alive; one of the user's application takes no name of ours."""
    values = {
        "queues": worker.queues,
        "pid": worker.pid,
        "seen_at": database_now(),
        "stopped_at": None,
        "skew_s": worker.skew_s,
        "slots": worker.slots,
        "follows": sa.null() if worker.follows is None else list(worker.follows),
        "signatures": dict(worker.signatures) or sa.null(),
    }
    its_row = _row(worker.name, is_follower=worker.follows is not None)
    seen = sa.update(workers).where(its_row).values(values)
    if connection.execute(seen).rowcount == 0:
        # Each process of a worker's pool reports: another one may have been first.
        first = insert_ignoring(connection, workers)
        connection.execute(first.values(name=worker.name, started_at=database_now(), **values))


def note_step_failures(connection: sa.Connection, name: str, failures: dict[str, str]) -> None:
    """Record the step modules that a worker could not load, with the reasons."""
    noted = sa.update(workers).where(workers.c.name == name)
    connection.execute(noted.values(step_failures=failures or sa.null()))


def stopped(connection: sa.Connection, name: str, *, is_follower: bool = False) -> None:
    """Record that a worker of ours, or of the user's application, stopped cleanly."""
    its_row = _row(name, is_follower=is_follower)
    connection.execute(sa.update(workers).where(its_row).values(stopped_at=database_now()))


def _row(name: str, *, is_follower: bool) -> sa.ColumnElement[bool]:
    its_name = workers.c.name == name
    return its_name & workers.c.follows.is_not(None) if is_follower else its_name


def followed_tasks(connection: sa.Connection, within: timedelta) -> frozenset[str]:
    """Return the user's tasks that workers seen within that span follow."""
    return frozenset(task_signatures(connection, within))


def task_signatures(connection: sa.Connection, within: timedelta) -> Signatures:
    """Return the tasks that workers seen within that span follow, with their parameters.

    Of a task that two of them report, those of the worker that was seen last.
    """
    query = (
        sa.select(workers.c.follows, workers.c.signatures)
        .where(workers.c.seen_at.between(database_now(-within), database_now(within)))
        .where(workers.c.follows.is_not(None))
        .order_by(workers.c.seen_at)
    )
    found: dict[str, tuple[str, ...] | None] = {}
    for row in connection.execute(query):
        for task in (one for one in row.follows or () if isinstance(one, str)):
            texts = (row.signatures or {}).get(task)
            found[task] = tuple(map(str, texts)) if isinstance(texts, list) else found.get(task)
    return found


def listened_queues(connection: sa.Connection, within: timedelta) -> frozenset[str]:
    """Return the broker's names of the queues that live workers consume."""
    return queues_of(live_workers(connection, within))


def queues_of(live: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the broker's names of the queues that these workers consume."""
    return frozenset(
        _listed(worker, queue.strip()) for worker in live for queue in worker["queues"].split(",")
    )


def _listed(worker: Mapping[str, Any], queue: str) -> str:
    return (OURS if worker["follows"] is None else CELERY).listed(queue)


def live_workers(connection: sa.Connection, within: timedelta) -> list[dict[str, Any]]:
    """Return the workers seen within that span that have not stopped, by name."""
    query = (
        sa.select(*(one for one in workers.c if one is not workers.c.signatures))
        .where(workers.c.seen_at.between(database_now(-within), database_now(within)))
        .where(workers.c.stopped_at.is_(None))
        .order_by(workers.c.name)
    )
    return dicts(connection, query)
