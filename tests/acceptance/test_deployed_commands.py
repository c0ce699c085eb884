"""Each command and health check of compose and Kubernetes, run by hand: as a user without rights.

They run on a real PostgreSQL and a real broker, in a folder that cannot be written, with all that
they may write in the home folder and one for temporary files.
"""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.acceptance.processes import Processes, until
from tests.docs.deployed import Check, Deployed, everything
from tests.namespaces import own_namespaces
from tests.servers import Broker, PostgreSQL, free_port, temporary_folder

# Each command once, with the checks of all who run it.
COMMANDS = {one.command: one for one in everything()}
CHECKS = {
    command: {check for one in everything() if one.command == command for check in one.checks}
    for command in COMMANDS
}
PATHS = sorted({path for one in everything() for path in one.paths})
MIGRATE = ("minutebook", "migrate")


def account() -> list[str]:
    """Return what runs a command without root's rights; it may still read Python's folder."""
    return [] if os.getuid() else own_namespaces("--map-user=1000", "--map-group=1000")


@pytest.fixture
def host(postgresql: PostgreSQL, own_broker: Broker) -> Iterator[tuple[Processes, Path]]:
    """A folder with secrets, and processes whose own folder is read-only."""
    folder = temporary_folder()
    for name in ("home", "tmp", "logs", "read-only"):
        (folder / name).mkdir()
    postgresql.execute("CREATE DATABASE deployed")
    (folder / "database_url").write_text(postgresql.url("deployed"))
    (folder / "broker_url").write_text(own_broker.url)
    (folder / "smtp_url").write_text("smtp://[::1]:1")
    (folder / "read-only").chmod(0o555)
    processes = Processes(folder / "logs", {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SCHED_HOME": str(folder / "home"),
        "SCHED_SCHEDULER_TICK_SECONDS": "5",
        "SCHED_WEB_PORT": str(free_port()),
        "TMPDIR": str(folder / "tmp"),
        "HOME": "/nonexistent",
    })  # fmt: skip
    try:
        yield processes, folder
    finally:
        processes.kill_all()
        postgresql.execute("DROP DATABASE deployed WITH (FORCE)")
        shutil.rmtree(folder, ignore_errors=True)


def is_answered(url: str) -> bool:
    return httpx.get(url, timeout=5).status_code == httpx.codes.NO_CONTENT


def test_every_command_runs_without_rights_and_its_health_check_passes(
    host: tuple[Processes, Path],
) -> None:
    processes, folder = host
    before = account()

    def ready(one: Deployed) -> tuple[list[str], dict[str, str], Path]:
        return [*before, *one.command], one.settings(folder), folder / "read-only"

    done = processes.run(*ready(COMMANDS[MIGRATE]))
    assert done.returncode == 0, done.stderr
    # Before anything runs, no check passes.
    lasting = [one for command, one in COMMANDS.items() if command != MIGRATE]
    checks = {check: one for one in lasting for check in CHECKS[one.command]}
    for check, one in checks.items():
        assert processes.run([*before, *check], *ready(one)[1:]).returncode == 1, check

    started = [processes.start(one.command[1], *ready(one)) for one in lasting]

    def passes(check: Check, one: Deployed) -> bool:
        return processes.run([*before, *check], *ready(one)[1:]).returncode == 0

    for check, one in checks.items():
        until(partial(passes, check, one), lambda: "".join(one.text() for one in started))
    url = f"http://127.0.0.1:{processes.environment['SCHED_WEB_PORT']}"
    for path in PATHS:
        until(partial(is_answered, url + path), f"204 of {path}")
    until((folder / "home/web.sock").exists, "workers of this account may follow")
    for process in started:
        process.send(signal.SIGTERM)
    assert [(one.name, one.ended()) for one in started] == [(one.name, 0) for one in started]
    assert list((folder / "read-only").iterdir()) == []
