"""`minutebook up`: everything in one command, stopped by Ctrl-C, killed, and started again."""

import contextlib
import signal
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from models.store.actions import find
from models.store.scope import WHOLE_INSTALLATION
from models.store.tenants import get
from runtime.config import load_settings
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, kill, until
from tests.factories import set_back
from tests.servers import Broker


@pytest.fixture
def home(tmp_path: Path, own_broker: Broker) -> Iterator[Installation]:
    """An empty home folder: SQLite and the embedded broker."""
    settings = load_settings(tmp_path, {}).model_copy(update={"broker_url": SecretStr("")})
    with closing(Installation("sqlite", settings, own_broker)) as made:
        yield made


def start_up(home: Installation, *arguments: str) -> Process:
    """Start `minutebook up`; it has its broker, its daemon ticked and its workers are ready."""
    command = home.command("up", *arguments)
    up = home.processes.start("up", command)
    up.said("is ready for quick")
    up.said("is ready for heavy")
    up.said("is ready for default")
    up.said("tick ")
    return up


def pids_of(up: Process, word: str) -> list[int]:
    """Return the pids of the children of `up` that have a word in their command."""
    found = []
    for child in psutil.Process(up.pid).children():
        with contextlib.suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            if word in " ".join(child.cmdline()):
                found.append(child.pid)
    return found


def make_due(home: Installation, name: str, app: str) -> None:
    """Set an action's watermark two minutes back, as if the daemon had slept."""
    with reading(home.engine) as connection:
        uid = find(connection, get(connection, app).id, name, WHOLE_INSTALLATION)["uid"]
    set_back(home.engine, uid, home.now() - timedelta(minutes=2))


def sent_rows(home: Installation) -> list[sa.RowMapping]:
    return [row for row in home.rows() if row["state"] != "missed"]


def test_up_runs_the_demo_within_two_ticks_and_ends_by_ctrl_c_leaving_nobody(
    home: Installation,
) -> None:
    up = start_up(home, "--demo")
    make_due(home, "every minute", "demo")

    until(lambda: len(sent_rows(home)) >= 1, "an operation is recorded and sent")
    row = home.becomes(sent_rows(home)[0]["id"], "success")
    up.send(signal.SIGINT)

    assert up.ended() == 0
    assert [(step["name"], step["state"]) for step in row["steps"]] == [
        ("refresh", "success"),
        ("publish", "success"),
    ]
    until(lambda: not home.processes.left(), "no process is left")


def test_a_killed_broker_is_started_again_and_nothing_is_lost(home: Installation) -> None:
    up = start_up(home)
    [broker] = pids_of(up, "broker.sock")

    kill(broker)
    id = home.operation(home.action())

    home.becomes(id, "success")
    assert len(home.trace.starts(id)) == 1


def test_a_killed_up_leaves_nobody_and_starts_again(home: Installation) -> None:
    up = start_up(home)

    up.kill()
    until(lambda: not home.processes.left(), lambda: f"nobody is left: {home.processes.left()}")
    start_up(home)

    id = home.operation(home.action())
    home.becomes(id, "success")
