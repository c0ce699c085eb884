"""Commands in a process: what it loads, what it lacks, what interrupts it, and what it leaves."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from types import FrameType, FunctionType

import pytest

from cli.main import INTERRUPTED, run
from models.values import format_instant
from processes import daemon
from runtime.config import load_settings
from services.actions.search import list_actions
from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write
from tests.namespaces import own_namespaces
from tests.servers import Broker

NO_SEMAPHORES = ["sh", "-c", 'mount -t tmpfs -o ro none /dev/shm && exec "$@"', "sh"]
COMMAND = [sys.executable, "-P", "-m", "minutebook"]


def in_shell(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command by a line of shell in which it is "$@"."""
    shell = ["sh", "-c", script, "sh", *COMMAND, *arguments]
    return subprocess.run(shell, check=False, capture_output=True, text=True, env=dict(os.environ))


def test_closed_streams_are_no_error(home: Path) -> None:
    done = in_shell('"$@" <&- >&- 2>&-', "--version")

    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_leaves_is_no_error(home: Path) -> None:
    # The pipe has no reader any more when the command writes its few lines.
    done = in_shell('{ { "$@"; echo $? >&3; } | true; } 3>&1', "--help")

    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_output_that_no_disk_takes_is_named(home: Path) -> None:
    done = in_shell('"$@" >/dev/full', "--help")

    (line,) = done.stderr.splitlines()
    assert (done.returncode, "cannot write: No space left on device" in line) == (1, True)


def test_a_group_without_a_command_prints_its_help_line_by_line(home: Path) -> None:
    done = in_shell('"$@"', "step")

    assert done.returncode == 2
    assert done.stdout.splitlines()[0] == "Usage: minutebook step [OPTIONS] COMMAND [ARGS]..."


def test_a_current_folder_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCHED_HOME", raising=False)
    folder = tmp_path / "gone"

    done = in_shell(f'mkdir "{folder}" && cd "{folder}" && rmdir "{folder}" && "$@"', "status")

    assert (done.returncode, done.stderr) == (
        2, "error: SCHED_HOME: the current folder no longer exists; change to another one\n"
    )  # fmt: skip


def test_a_worker_without_a_folder_for_temporary_files_says_what_to_mount(home: Path) -> None:
    # No file may have a byte, so none of the folders in question passes Python's trial.
    done = in_shell('ulimit -f 0; "$@"', "worker")

    assert done.returncode == 2
    assert done.stderr.startswith("error: TMPDIR: no folder for temporary files can be written; ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_up_goes_on_when_nobody_can_read_its_link(home: Path) -> None:
    # Without Python's end, which would try to write it again.
    script = """
import os, pathlib, sys
from processes.up import print_link
from services.installation import Installation
print_link(Installation(pathlib.Path(sys.argv[1]), "default"))
os._exit(7)
"""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-c", script, home], check=False, stdout=full)

    assert done.returncode == 7


def test_a_worker_without_semaphores_says_what_to_mount() -> None:
    alone = own_namespaces("--map-root-user", "--mount", first=NO_SEMAPHORES)
    check = "from processes.worker import check_semaphores; check_semaphores()"

    words = [*alone, sys.executable, "-c", check]
    done = subprocess.run(words, check=False, capture_output=True, text=True)

    told = "Read-only file system; mount a file system that can be written at /dev/shm"
    assert told in done.stderr


def test_the_system_s_time_zones_change_no_local_time(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A system whose release has other rules for Paris: those of Tokyo.
    (tmp_path / "zones/Europe").mkdir(parents=True)
    with as_file(files("tzdata") / "zoneinfo/Asia/Tokyo") as tokyo:
        shutil.copy(tokyo, tmp_path / "zones/Europe/Paris")
    monkeypatch.setenv("PYTHONTZPATH", str(tmp_path / "zones"))
    file = tmp_path / "action.json"
    when = {"cron_rule": "30 2 * * *", "timezone": "Europe/Paris"}
    file.write_text(json.dumps({"name": "a", "when": when, "operations": {"maintenance": {}}}))

    done = in_shell('"$@"', "action", "check", str(file))

    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r" 02:30 \+0[12]:00 Europe/Paris", done.stdout)


# The grammar of documents, the rules of cron, and what decides, sends or changes.
GRAMMAR = {"models.action.plan", "models.action.document", "models.tenant.document", "cron"}
DECIDING = {"scheduler", "broker.sending", "broker.app", "services.changes", "services.runs"}
HEAVY = {
    *("alembic", "amqp", "celery", "dateutil.parser", "duckdb", "email_validator", "fastapi"),
    *("httpx", "jinja2", "kombu", "pytz", "redis", "rich.console", "starlette"),
    *("sqlalchemy.dialects.postgresql", "sqlalchemy.orm", "yaml"),
}


def loaded_by(*command: str) -> set[str]:
    """Return what a process has loaded when its command has succeeded."""
    tells = "print(code, *sys.modules, file=sys.stderr)"
    text = f"import sys; from cli.main import run; code = run({command!r}); {tells}"
    words = [sys.executable, "-P", "-c", text]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    code, *loaded = done.stderr.splitlines()[-1].split()
    assert code == "0"
    return set(loaded)


@pytest.mark.parametrize("command", ["status", "action list", "run list"])
def test_a_command_that_shows_loads_neither_the_grammar_nor_what_sends_or_changes(
    command: str, home: Path
) -> None:
    assert not {*GRAMMAR, *DECIDING, *HEAVY} & loaded_by(*command.split())


def test_help_loads_no_command() -> None:
    assert not {*GRAMMAR, *DECIDING, *HEAVY, "sqlalchemy", "pydantic"} & loaded_by("--help")


WORKER_THAT_TELLS = """
import sys
from celery import signals
from cli.main import run

@signals.worker_ready.connect
def tell(**_):
    print("loaded", *sys.modules, file=sys.stderr, flush=True)

sys.exit(run(["worker", "--concurrency", "1"]))
"""


def test_a_worker_is_ready_before_anything_that_only_steps_need_is_loaded(
    home: Path, broker: Broker
) -> None:
    environment = {**os.environ, "SCHED_BROKER_URL": broker.url}
    command = [sys.executable, "-P", "-c", WORKER_THAT_TELLS]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        told = next((line for line in worker.stderr if line.startswith("loaded ")), "")
        worker.terminate()
        worker.communicate(timeout=120)

    loaded = set(told.split())
    heavy = {"alembic", "duckdb", "fastapi", "fsspec", "httpx", "jinja2", "numpy"}
    assert "celery.worker.worker" in loaded
    assert not {*heavy, "email_validator", "icalendar", "rich.console", "uvicorn"} & loaded
    assert not {"scheduler", "data.steps", "web.app", "services.actions"} & loaded
    assert not {"sqlalchemy.dialects.postgresql", "sqlalchemy.orm"} & loaded


@contextmanager
def pressing(function: FunctionType) -> Iterator[None]:
    """Press Ctrl-C at the first call of a function."""
    waits = [True]

    def press(frame: FrameType, event: str, _value: object) -> None:
        if event == "call" and frame.f_code is function.__code__ and waits:
            waits.clear()
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.setprofile(press)
    try:
        yield
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, before)
    assert not waits


# pydantic makes an error of its own of whatever the first raises; nothing catches the second's.
@pytest.mark.parametrize("function", [format_instant, list_actions])
def test_ctrl_c_ends_a_command_without_an_error(
    function: FunctionType, call: Call, write: Write
) -> None:
    call("action", "add", write(make_document()))

    with pressing(function):
        answered = call("action", "list")

    assert (answered.code, answered.err) == (INTERRUPTED, "")


@pytest.mark.parametrize("is_there", [True, False])
def test_the_database_is_for_its_account_alone(tmp_path: Path, is_there: bool) -> None:
    home = tmp_path / "home"
    if is_there:
        home.mkdir(mode=0o755)

    assert daemon.main(["--home", str(home), "--once"]) == 0
    assert run(["--home", str(home), "migrate"]) == 0

    assert (home / "minutebook.db").exists()
    assert not [path for path in home.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert stat.S_IMODE(home.stat().st_mode) == (0o755 if is_there else 0o700)


def test_a_password_in_the_query_is_not_logged(tmp_path: Path) -> None:
    url = "postgresql://app:hunter1@db/minutebook?password=hunter2&sslmode=require"

    shown = load_settings(tmp_path, {"SCHED_DATABASE_URL": url}).shown_database_url

    assert shown == "postgresql://app:***@db/minutebook"
