"""Downloads of large snapshots by a real web process: its memory, its places, their end."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from models.roles import Role
from runtime.config import load_settings
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until
from tests.acceptance.web_door import start_web
from tests.hostile.viewers import memory_of, publish_many, statuses, viewers
from tests.servers import Broker, temporary_folder

# Of the web process, from the issue.
MOST_MIB = 50
# A Python with DuckDB, and what it holds of the file.
MOST_OF_A_CHILD_MIB = 250
APPS = ("shop", "bakery")
PATH = "/api/apps/{}/data/big"


@pytest.fixture(scope="module")
def place(sqlite_template: Path, _broker: Broker) -> Iterator[Installation]:
    """An installation whose two small apps have published a large snapshot."""
    folder = temporary_folder()
    shutil.copy(sqlite_template, folder / "minutebook.db")
    made = Installation("sqlite", load_settings(folder, {}), _broker)
    for app in APPS:
        publish_many(made.engine, made.settings, app)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def web(place: Installation) -> Iterator[tuple[Process, str]]:
    """A web process and its address; it ends each download after ten seconds."""
    process, address = start_web(place, {"SCHED_WEB_DOWNLOAD_S": "10"})
    yield process, address
    process.kill()


def token_of(place: Installation, app: str) -> str:
    created = place.cli("--app", app, "token", "create", "--role", Role.VIEWER)
    return str(created["token"])


def test_viewers_who_read_nothing_cost_no_memory(
    place: Installation, web: tuple[Process, str]
) -> None:
    process, address = web
    token = token_of(place, "shop")
    before = memory_of(process.pid)

    with viewers(50, address, token, PATH.format("shop")) as answers:
        during = memory_of(process.pid)

    assert during.own - before.own < MOST_MIB, (before, during)
    assert during.children < 2 * MOST_OF_A_CHILD_MIB, during
    assert statuses(answers) == {200: 2, 429: 48}
    assert all(b"retry-after: 5" in one for one in answers if b"429" in one)


def test_all_apps_together_have_so_many_downloads(
    place: Installation, web: tuple[Process, str]
) -> None:
    """Two of each app, and none is left for the next."""
    _process, address = web
    publish_many(place.engine, place.settings, "cafe", 10)

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
