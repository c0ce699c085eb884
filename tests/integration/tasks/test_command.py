"""The step `command`: real programs under a worker's code, and what is left of them: nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import psutil
import pytest
import yaml

from models.errors import InvalidAction
from models.store import tenants
from models.store.operations import log_lines
from models.trust import RESTRICTED
from runtime.config import Settings
from scheduler.changes.change import create_all
from tasks.lease import stopping
from tests.acceptance.processes import until
from tests.factories import DEFAULT_APP, author, make_document, row_of, update_operation
from tests.integration.tasks.crew import NOON, Work
from tests.namespaces import own_namespaces
from tests.transactions import act

# Hears TERM and goes on, and its child ignores it; both write that they live.
STUBBORN = (
    "trap '' TERM; (while :; do sleep 0.1; echo child >> {0}/child; done) & "
    "trap 'echo TERM >> {0}/heard' TERM; while :; do sleep 0.1; echo parent >> {0}/parent; done"
)

# What programs do, by the fact that it shows.
PROGRAMS = yaml.safe_load(Path(__file__).with_name("programs.yaml").read_text(encoding="utf-8"))
WORKER = """
import sys
from pathlib import Path
from uuid import UUID
from runtime.config import load_settings
from runtime.database import make_engine
from tasks.execute import run_attempt
from tasks.registry import Registry
settings = load_settings(Path(sys.argv[1]))
run_attempt(make_engine(settings), settings, Registry(), (UUID(sys.argv[2]), 1), "tests")
"""


@pytest.fixture
def settings(home_of: Callable[[str], Settings]) -> Settings:
    """The store makes no difference to programs."""
    return home_of("sqlite").model_copy(update={"commands": ("*",)})


class Programs(Work):
    def made(self, parameters: dict[str, Any], **changes: Any) -> UUID:
        """Record one, which all programs were allowed when it was saved."""
        document = make_document(operations={"command": parameters}, **changes)
        allowed = replace(author(), commands=("*",))
        return self.operation(create_all(self.engine, [document], allowed)[0])

    def run(self, parameters: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """Return the row of one that was run, with the lines of its log."""
        id = self.made(parameters, **changes)
        self.attempt(id)
        return self.row(id)

    def row(self, id: UUID) -> dict[str, Any]:
        log = act(self.engine, log_lines, id)
        lines = [(one["level"], one["message"]) for one in log]
        return {**row_of(self.engine, id), "log": lines}

    def allow(self, *commands: str) -> None:
        self.settings = self.settings.model_copy(update={"commands": commands})

    def by_a_worker(self, id: UUID, *prefix: str) -> "subprocess.Popen[bytes]":
        """Start a process that runs an operation."""
        left_out = {"HOME", "LOGNAME"} if prefix else set()
        environ = {name: its for name, its in os.environ.items() if name not in left_out}
        command = [*prefix, sys.executable, "-P", "-c", WORKER, str(self.settings.home), str(id)]
        return subprocess.Popen(command, env={**environ, "SCHED_COMMANDS": "shell"})


@pytest.fixture
def programs(work: Work) -> Programs:
    return Programs(work.engine, work.settings)


@pytest.mark.parametrize("fact", PROGRAMS)
def test_a_program_ends_as_the_table_says(programs: Programs, fact: str) -> None:
    given = PROGRAMS[fact]
    row = programs.run(given["command"], policy=given.get("policy", {}))

    error = given.get("error", "")
    assert row["state"] == given.get("state", "failed" if error else "success")
    assert error in (row["error"] or "")
    (step,) = row["steps"]
    assert given.get("message") in (None, step.get("message"))
    assert given.get("exit_code") in (None, step.get("details", {}).get("exit_code"))
    assert "log" not in given or sorted(row["log"]) == [tuple(one) for one in given["log"]]


def test_the_environment_is_clean(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHED_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("TOKEN", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    code = "import json, os; print(json.dumps(dict(os.environ)))"

    row = programs.run({"run": [sys.executable, "-c", code], "env": {"STAGE": "test"}})

    found = json.loads(row["log"][0][1])
    own = {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER"}
    assert set(found) - own == {
        "MINUTEBOOK_ATTEMPT", "MINUTEBOOK_OCCURRENCE_AT", "MINUTEBOOK_OPERATION_ID", "STAGE",
    }  # fmt: skip
    assert found["MINUTEBOOK_OPERATION_ID"] == str(row["id"])
    assert found["MINUTEBOOK_OCCURRENCE_AT"] == "2027-01-04T12:00:00Z"


def test_a_secret_reaches_the_program_and_no_log(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one of several lines, or in a long line."""
    monkeypatch.setenv("BACKUP_KEY", "-----BEGIN-----\nMIIEvQIBADAN\n-----END-----")
    monkeypatch.setenv("BACKUP_TOKEN", "s3cret" * 20)
    line = (
        f'test "$TOKEN" = {"s3cret" * 20} && echo "with $TOKEN"; echo "$KEY"; '
        'printf "%01990d$TOKEN\\n" 0; printf "$TOKEN%01990d$TOKEN$TOKEN" 0'
    )

    row = programs.run(
        {"shell": line, "env": {"KEY": "env:BACKUP_KEY", "TOKEN": "env:BACKUP_TOKEN"}}
    )

    assert row["log"][:4] == [("INFO", "with ***"), *[("INFO", "***")] * 3]
    assert len(row["log"]) == 6
    assert not [text for _, text in row["log"] if "s3c" in text]


def test_a_flood_of_output_is_read_to_its_end_and_kept_in_bounds(programs: Programs) -> None:
    flood = "yes minutebook | head -c 20000000; echo; printf '%0100000d' 1; echo end"

    row = programs.run({"shell": flood})

    assert row["state"] == "success"
    assert row["result"]["command"]["output_bytes"] > 20_000_000
    assert len(row["log"]) <= 200
    assert row["log"][-1][1].startswith("0000")
    assert max(len(text) for _, text in row["log"]) < 3_000


def test_what_a_program_leaves_in_its_group_ends_with_it(
    programs: Programs, tmp_path: Path
) -> None:
    row = programs.run({"shell": f"sleep 600 & echo $! > {tmp_path}/pid"})

    assert row["state"] == "success"
    assert not is_alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(STUBBORN, id="deaf"),
        pytest.param("echo $$ > {0}/pid; kill -STOP $PPID; sleep 600", id="stops_its_helper"),
    ],
)
def test_the_time_limit_ends_the_whole_group(programs: Programs, tmp_path: Path, line: str) -> None:
    row = programs.run({"shell": line.format(tmp_path)}, policy={"time_limit": "PT2S"})

    assert (row["state"], row["error"]) == ("failed", "time limit: the program was ended")
    if (pid := tmp_path / "pid").exists():
        until(lambda: not is_alive(int(pid.read_text())), "the program has ended")
    assert_still(tmp_path)


@pytest.mark.parametrize(
    ("how", "state", "attempt"), [("cancel", "cancelled", 1), ("stop", "pending", 2)]
)
def test_a_cancel_and_a_stop_end_the_whole_group(
    programs: Programs, tmp_path: Path, how: str, state: str, attempt: int
) -> None:
    """A worker that stops gives the operation back after that."""
    worker = programs.settings.worker.model_copy(update={"heartbeat_s": 0.2})
    programs.settings = programs.settings.model_copy(update={"worker": worker})
    id = programs.made({"shell": STUBBORN.format(tmp_path)})

    with ThreadPoolExecutor(1) as pool:
        pool.submit(_end_once_it_runs, programs, id, tmp_path, how)
        programs.attempt(id)

    row = row_of(programs.engine, id)
    assert (row["state"], row["attempt"]) == (state, attempt)
    assert (tmp_path / "heard").exists()
    assert_still(tmp_path)


def _end_once_it_runs(programs: Programs, id: UUID, folder: Path, how: str) -> None:
    until((folder / "child").exists, "the program runs")
    if how == "stop":
        stopping.value = True
    else:
        update_operation(programs.engine, id, cancel_requested_at=NOON)


def test_a_worker_whose_account_has_no_name_runs_programs(programs: Programs) -> None:
    nameless = own_namespaces("--map-user=4242", "--map-group=4242")
    id = programs.made({"shell": "echo at $HOME as ${LOGNAME-nobody}"})

    assert programs.by_a_worker(id, *nameless).wait(60) == 0

    row = programs.row(id)
    assert (row["state"], row["log"]) == ("success", [("INFO", "at / as nobody")])


@pytest.mark.parametrize("killed", ["worker", "helper"])
def test_a_killed_worker_leaves_no_child(programs: Programs, tmp_path: Path, killed: str) -> None:
    with programs.by_a_worker(programs.made({"shell": STUBBORN.format(tmp_path)})) as worker:
        until((tmp_path / "child").exists, "the program runs")
        (helper, *_) = psutil.Process(worker.pid).children()
        os.kill(worker.pid if killed == "worker" else helper.pid, signal.SIGKILL)
        worker.wait(30)

    assert_still(tmp_path)


def is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def assert_still(folder: Path) -> None:
    """No process writes into the folder any more."""
    sizes = {"": -1}

    def same() -> bool:
        nonlocal sizes
        before, sizes = sizes, {one.name: one.stat().st_size for one in folder.iterdir()}
        Event().wait(0.3)
        return before == sizes

    until(same, "the group has ended")


WITH_DAY = {"run": ["/bin/true"], "env": {"DAY": "1"}}


@pytest.mark.parametrize(
    ("allowed", "parameters", "why"),
    [
        ((), {"run": ["/bin/true"]}, "SCHED_COMMANDS allows no program"),
        (("/opt/*",), {"run": ["/opt/../bin/true"]}, "add '/bin/true', or a pattern"),
        (("/opt/x",), {"run": ["./x"], "cwd": "/tmp"}, "add '/tmp/x', or a pattern"),
        (("true",), {"shell": "true"}, "add the word shell, for any command"),
        (("/bin/true",), WITH_DAY, "have no variable DAY; add '/bin/true(DAY)' to it"),
    ],
)
def test_a_program_has_to_be_allowed_at_save_and_at_run(
    programs: Programs, allowed: tuple[str, ...], parameters: dict[str, Any], why: str
) -> None:
    programs.allow(*allowed)

    assert why in programs.run(parameters)["error"]
    document = make_document(name="b", operations={"command": parameters})
    with pytest.raises(InvalidAction) as refused:
        create_all(programs.engine, [document], replace(author(), commands=allowed))
    assert why in str(refused.value)


def test_no_program_runs_for_a_restricted_small_app(programs: Programs) -> None:
    act(programs.engine, tenants.set_trust, DEFAULT_APP.id, RESTRICTED)

    assert "--trusted" in programs.run({"run": ["/bin/true"]})["error"]
