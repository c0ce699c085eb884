"""Store which workers live, the queues that they read, and the tasks that they follow."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.celery_task import Signatures
from models.sql import database_now, dicts, insert_ignoring, read_clock
from models.store import key_values
from models.stored import instant_in
from models.tables import workers
from models.worker_kinds import CELERY, OURS

# A worker that was not seen for this long is gone.
GONE = timedelta(minutes=1)
# Without a word from any web process for this part of a lease, workers outside cannot renew theirs.
WEB_GAP = 1 / 3


@dataclass(frozen=True, slots=True)
class Heartbeat:
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


def beat(connection: sa.Connection, worker: Heartbeat) -> None:
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


def web_seen(connection: sa.Connection, lease: timedelta) -> None:
    """Record that a web process lives."""
    now, seen, since = _web(connection)
    known = since if seen is not None and abs(now - seen) <= WEB_GAP * lease else now
    lives = {"seen": now.isoformat(), "since": (known or now).isoformat()}
    key_values.set_value(connection, key_values.WEB, json.dumps(lives))


def web_lives(connection: sa.Connection, lease: timedelta) -> bool:
    """Return whether web processes have lived for a whole lease, or no worker ever needed one."""
    now, seen, since = _web(connection)
    if seen is None or since is None:
        return True
    return abs(now - seen) <= WEB_GAP * lease and now - since >= lease


def _web(connection: sa.Connection) -> tuple[datetime, datetime | None, datetime | None]:
    """Return now, when a web process was last seen, and since when without a gap."""
    stored = key_values.json_value(connection, key_values.WEB)
    seen, since = (instant_in(stored.get(name)) for name in ("seen", "since"))
    return read_clock(connection), seen, since


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
        for task in row.follows or ():
            texts = (row.signatures or {}).get(task)
            found[task] = tuple(map(str, texts)) if isinstance(texts, list) else found.get(task)
    return found


def known_tasks(connection: sa.Connection, within: timedelta) -> dict[str, frozenset[str]]:
    """Return the tasks that workers seen within that span follow, by the queues that they read."""
    found: dict[str, frozenset[str]] = {}
    for worker in live_workers(connection, within):
        for queue in () if worker["follows"] is None else worker["queues"].split(","):
            found[queue.strip()] = found.get(queue.strip(), frozenset()) | {*_followed(worker)}
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
    return list(readers(connection, within, within).live)


@dataclass(frozen=True, slots=True)
class Readers:
    """The workers that were seen within a day: those that live, and those that are gone."""

    live: tuple[dict[str, Any], ...]
    gone: tuple[dict[str, Any], ...]

    @property
    def queues(self) -> frozenset[str]:
        """The names of the queues that live workers consume, as in the broker."""
        return queues_of(self.live)

    def left_at(self, queue: str) -> datetime | None:
        """Return when the last worker that read a queue was seen last; None if none was."""
        its = (one for one in self.gone if queue in queues_of([one]))
        return max((_seen_last(one) for one in its), default=None)

    @property
    def lost(self) -> dict[str, datetime]:
        """The tasks of applications that no live worker follows any more, and since when."""
        followed = {task for one in self.live for task in _followed(one)}
        found: dict[str, datetime] = {}
        for one in self.gone:
            for task in set(_followed(one)) - followed:
                at = _seen_last(one)
                found[task] = max(at, found.get(task, at))
        return found


def _seen_last(worker: Mapping[str, Any]) -> datetime:
    at: datetime = worker["stopped_at"] or worker["seen_at"]
    return at


def _followed(worker: dict[str, Any]) -> list[str]:
    """Return the tasks that a row says that its worker follows."""
    return [name for name in worker["follows"] or () if isinstance(name, str)]


def readers(connection: sa.Connection, lease: timedelta, within: timedelta) -> Readers:
    """Return the live workers, and the others that were last seen `within` that span."""
    seen = workers.c.seen_at.between(database_now(-within), database_now(within))
    is_live = sa.and_(
        workers.c.seen_at.between(database_now(-lease), database_now(lease)),
        workers.c.stopped_at.is_(None),
    ).label("is_live")
    query = sa.select(workers, is_live).where(seen).order_by(workers.c.name)
    rows = dicts(connection, query)
    live = tuple(row for row in rows if row["is_live"])
    gone = tuple(row for row in rows if not row["is_live"])
    return Readers(live, gone)
