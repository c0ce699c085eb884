"""Downloads of large snapshots by a real web process: its memory, its places, their end."""

import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import duckdb
import httpx
import psutil
import pytest

from data.snapshots import Place
from data.store import snapshots
from data.store.snapshots import Snapshot
from runtime.config import load_settings
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until
from tests.factories import make_action, make_app, make_operation
from tests.servers import Broker, temporary_folder
from tests.transactions import act, clock_of

# Of the web process, from the issue.
MOST_MIB = 50
# A Python with DuckDB, and what it holds of the file.
MOST_OF_A_CHILD_MIB = 250
APPS = ("shop", "bakery")
PATH = "/api/apps/{}/data/big"
MIB = 1 << 20
TEXT = "the same in each row; " * 12
# Larger than what a socket takes while nobody reads.
MANY = 1_000_000
# As soon as a socket has something.
ANSWER_S = 60


def memory_of(*pids: int) -> float:
    """Return the resident memory of processes that have not ended, in MiB."""
    found = 0.0
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            found += psutil.Process(pid).memory_info().rss / MIB
    return found


def publish_many(made: Installation, app: str, rows: int = MANY) -> None:
    """Let a small app have published a domain of so many rows."""
    engine, place = made.engine, Place(app, "big", uuid4())
    file = made.home / place.path
    file.parent.mkdir(parents=True)
    with duckdb.connect() as duck:
        duck.execute("SET enable_progress_bar = false")
        duck.execute(
            f"COPY (SELECT 7 AS id, '{TEXT}' AS name FROM range({rows})) TO '{file}' "
            "(FORMAT parquet, COMPRESSION zstd)"
        )
    its = make_app(engine, app, domains={"big": {"source": {"file": f"{app}/big.csv"}}})
    now = clock_of(engine)
    id = make_operation(engine, make_action(engine, name="big", app=its), now, app=its)
    snapshot = Snapshot(place.id, "big", place.path, rows, file.stat().st_size, "", {}, {})
    act(engine, snapshots.stage, its.id, snapshot, id, now)
    act(engine, snapshots.publish, its.id, ["big"], id)


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


@pytest.fixture(scope="module")
def place(sqlite_template: Path, _broker: Broker) -> Iterator[Installation]:
    """An installation whose two small apps have published a large snapshot."""
    folder = temporary_folder()
    shutil.copy(sqlite_template, folder / "minutebook.db")
    made = Installation(load_settings(folder, {}), _broker)
    for app in APPS:
        publish_many(made, app)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def web(place: Installation) -> Iterator[tuple[Process, str]]:
    """A web process and its address; it ends each download after ten seconds."""
    process, address = place.web({"SCHED_WEB_DOWNLOAD_S": "10"})
    yield process, address
    process.kill()


def token_of(place: Installation, app: str) -> str:
    created = place.cli("--app", app, "token", "create", "--role", "viewer")
    return str(created["token"])


def test_viewers_who_read_nothing_cost_no_memory(
    place: Installation, web: tuple[Process, str]
) -> None:
    process, address = web
    token = token_of(place, "shop")
    before = memory_of(process.pid)

    with viewers(50, address, token, PATH.format("shop")) as answers:
        during = memory_of(process.pid)
        of_children = memory_of(*process.children())

    assert during - before < MOST_MIB, (before, during)
    assert of_children < 2 * MOST_OF_A_CHILD_MIB
    assert statuses(answers) == {200: 2, 429: 48}
    assert all(b"retry-after: 5" in one for one in answers if b"429" in one)


def test_all_apps_together_have_so_many_downloads(
    place: Installation, web: tuple[Process, str]
) -> None:
    """Two of each app, and none is left for the next."""
    _process, address = web
    publish_many(place, "cafe", 10)

    with (
        viewers(2, address, token_of(place, "shop"), PATH.format("shop")) as of_shop,
        viewers(2, address, token_of(place, "bakery"), PATH.format("bakery")) as of_bakery,
        viewers(1, address, token_of(place, "cafe"), PATH.format("cafe")) as of_cafe,
    ):
        assert statuses(of_shop + of_bakery) == {200: 4}
        assert statuses(of_cafe) == {503: 1}


@pytest.mark.parametrize("how", ["leaves", "reads_nothing"])
def test_a_download_ends_with_its_viewer(
    place: Installation, web: tuple[Process, str], how: str
) -> None:
    process, address = web
    token = token_of(place, "shop")
    readers = place.home / "scratch" / "readers"
    # Those of killed processes, which maintenance removes.
    before = {*readers.glob("*")}

    with viewers(1, address, token, PATH.format("shop")) as answers:
        assert statuses(answers) == {200: 1}
        assert len(process.children()) == 1
        if how == "reads_nothing":
            until(lambda: not process.children(), "the child ends")

    until(lambda: not process.children(), "the child ends")
    until(lambda: {*readers.iterdir()} == before, "its folder is removed")
    assert "Traceback" not in process.text()


def test_a_download_whose_child_is_killed_is_not_taken_for_whole(
    place: Installation, web: tuple[Process, str]
) -> None:
    process, address = web
    headers = {"Authorization": f"Bearer {token_of(place, 'shop')}"}

    with httpx.stream("GET", address + PATH.format("shop"), headers=headers, timeout=60) as answer:
        (child,) = psutil.Process(process.pid).children(recursive=True)
        child.kill()
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            answer.read()

    process.said("a download of small app shop was cut: the snapshot ended its process")
    assert "Traceback" not in process.text()
