"""Viewers who download a large snapshot, and the memory that it costs the web process."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import duckdb
import psutil
import sqlalchemy as sa

from data.snapshots import Place
from data.store import snapshots
from data.store.snapshots import Snapshot
from models.sql import read_clock
from models.store.tenants import storing
from models.tenant.document import parse_small_app
from runtime.config import Settings
from tests.factories import make_action, make_operation

MIB = 1 << 20
TEXT = "the same in each row; " * 12
# Larger than what a socket takes while nobody reads.
MANY = 1_000_000
# As soon as a socket has something.
ANSWER_S = 60


@dataclass(frozen=True)
class RunHistory:
    """The resident memory of a process, and of its children together, in MiB."""

    own: float
    children: float


def memory_of(pid: int) -> RunHistory:
    process = psutil.Process(pid)
    of_children = 0
    for child in process.children(recursive=True):
        try:
            of_children += child.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return RunHistory(process.memory_info().rss / MIB, of_children / MIB)


def publish_many(engine: sa.Engine, settings: Settings, app: str, rows: int = MANY) -> None:
    place = Place(app, "big", uuid4())
    file = settings.home / place.path
    file.parent.mkdir(parents=True)
    with duckdb.connect() as made:
        made.execute("SET enable_progress_bar = false")
        made.execute(
            f"COPY (SELECT 7 AS id, '{TEXT}' AS name FROM range({rows})) TO '{file}' "
            "(FORMAT parquet, COMPRESSION zstd)"
        )
    _record(engine, app, place, rows, file)


def _record(engine: sa.Engine, app: str, place: Place, rows: int, file: Path) -> None:
    """Store the app with its domain, and let production be the file."""
    document = {"name": app, "domains": {"big": {"source": {"file": f"{app}/big.csv"}}}}
    snapshot = Snapshot(place.id, "big", place.path, rows, file.stat().st_size, "", {}, {})
    with engine.begin() as connection:
        now = read_clock(connection)
        its, _applied = storing.apply(connection, parse_small_app(document))
    id = make_operation(engine, make_action(engine, name="big", app=its), now, app=its)
    with engine.begin() as connection:
        snapshots.stage(connection, its.id, snapshot, id, now)
        snapshots.publish(connection, its.id, ["big"], id)


@contextmanager
def viewers(count: int, address: str, token: str, path: str) -> Iterator[list[bytes]]:
    """Yield what `count` viewers have of their answers first; they stay, and read no more."""
    host, port = str(urlsplit(address).hostname), urlsplit(address).port
    asked = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
    with ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection((host, port), ANSWER_S))
            for _ in range(count)
        ]
        for one in connections:
            one.sendall(asked.encode())
        yield [one.recv(1000) for one in connections]


def statuses(answers: list[bytes]) -> dict[int, int]:
    found = [int(one.split(b" ", 2)[1]) for one in answers]
    return {status: found.count(status) for status in sorted(set(found))}
