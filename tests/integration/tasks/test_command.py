"""The step `command`: real programs under a worker's code, and what is left of them: nothing."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from models.errors import InvalidAction
from models.store import tenants
from models.store.operations import log_lines
from models.tables import operations
from models.trust import RESTRICTED
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes.change import create_all
from tasks import lease
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.acceptance.processes import until
from tests.factories import DEFAULT_APP, author, make_document, make_operation, row_of
from tests.namespaces import own_namespaces

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
ALL = ("*",)
# Ignores TERM, and so does its child; both write that they live.
STUBBORN = (
    "trap '' TERM; (while :; do sleep 0.1; echo child >> {0}/child; done) & "
    "while :; do sleep 0.1; echo parent >> {0}/parent; done"
)

# What programs do, by the fact that it shows.
PROGRAMS = yaml.safe_load(Path(__file__).with_name("programs.yaml").read_text(encoding="utf-8"))
Run = Callable[..., dict[str, Any]]


def made(engine: sa.Engine, parameters: dict[str, Any], **changes: Any) -> Any:
    document = make_document(operations={"command": parameters}, **changes)
    allowed = replace(author(), commands=ALL)
    return make_operation(engine, create_all(engine, [document], allowed)[0], NOON)


@pytest.fixture
def settings(home_of: Callable[[str], Settings]) -> Settings:
    """The store makes no difference to programs."""
    return home_of("sqlite").model_copy(update={"commands": ALL})


@pytest.fixture
def run(engine: sa.Engine, settings: Settings) -> Run:
    def run_it(parameters: dict[str, Any], **changes: Any) -> dict[str, Any]:
        operation = made(engine, parameters, **changes)
        run_attempt(engine, settings, Registry(), (operation, 1), "tests")
        with reading(engine) as connection:
            return {**row_of(engine, operation), "log": log_lines(connection, operation)}

    return run_it


def lines(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["level"], one["message"]) for one in row["log"]]


@pytest.mark.parametrize("fact", PROGRAMS)
def test_a_program_ends_as_the_table_says(run: Run, fact: str) -> None:
    given = PROGRAMS[fact]
    row = run(given["command"], policy=given.get("policy", {}))

    error = given.get("error", "")
    assert row["state"] == given.get("state", "failed" if error else "success")
    assert error in (row["error"] or "")
    (step,) = row["steps"]
    assert given.get("message") in (None, step.get("message"))
    assert given.get("exit_code") in (None, step.get("details", {}).get("exit_code"))
    assert "log" not in given or sorted(lines(row)) == [tuple(one) for one in given["log"]]


def test_arguments_that_are_too_long_are_no_start(run: Run) -> None:
    row = run({"run": ["/bin/true", *["x" * 9_999] * 400]})

    assert "cannot start: /bin/true: Argument list too long" in row["error"]


def test_the_environment_is_clean(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHED_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("TOKEN", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    code = "import json, os; print(json.dumps(dict(os.environ)))"

    row = run({"run": [sys.executable, "-c", code], "env": {"STAGE": "test"}})

    found = json.loads(row["log"][0]["message"])
    own = {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER"}
    assert set(found) - own == {
        "MINUTEBOOK_ATTEMPT", "MINUTEBOOK_OCCURRENCE_AT", "MINUTEBOOK_OPERATION_ID", "STAGE",
    }  # fmt: skip
    assert found["MINUTEBOOK_OPERATION_ID"] == str(row["id"])
    assert found["MINUTEBOOK_OCCURRENCE_AT"] == "2027-01-04T12:00:00Z"


def test_a_secret_reaches_the_program_and_no_log(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKUP_TOKEN", "s3cret")
    line = 'test "$TOKEN" = s3cret && echo "with $TOKEN"'

    row = run({"shell": line, "env": {"TOKEN": "env:BACKUP_TOKEN"}})

    assert lines(row) == [("INFO", "with ***")]


def test_a_secret_of_several_lines_or_in_a_long_one_is_hidden(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKUP_KEY", "-----BEGIN-----\nMIIEvQIBADAN\n-----END-----")
    monkeypatch.setenv("BACKUP_TOKEN", "s3cret" * 20)
    line = 'echo "$KEY"; printf "%01990d$TOKEN\\n" 0; printf "$TOKEN%01990d$TOKEN$TOKEN" 0'

    row = run({"shell": line, "env": {"KEY": "env:BACKUP_KEY", "TOKEN": "env:BACKUP_TOKEN"}})

    assert [text for _, text in lines(row)][:3] == ["***"] * 3
    assert len(row["log"]) == 5
    assert not [text for _, text in lines(row) if "s3c" in text]


def test_a_flood_of_output_is_read_to_its_end_and_kept_in_bounds(run: Run) -> None:
    row = run({"shell": "yes minutebook | head -c 100000000; echo; printf '%0100000d' 1; echo end"})

    assert row["state"] == "success"
    assert row["result"]["command"]["output_bytes"] > 100_000_000
    assert len(row["log"]) <= 200
    assert lines(row)[-1][1].startswith("0000")
    assert max(len(text) for _, text in lines(row)) < 3_000


def test_what_a_program_leaves_in_its_group_ends_with_it(run: Run, tmp_path: Path) -> None:
    row = run({"shell": f"sleep 600 & echo $! > {tmp_path}/pid"})

    assert row["state"] == "success"
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_the_time_limit_ends_the_whole_group(run: Run, tmp_path: Path) -> None:
    row = run({"shell": STUBBORN.format(tmp_path)}, policy={"time_limit": "PT1S"})

    assert (row["state"], row["error"]) == ("failed", "time limit: the program was ended")
    assert in_unindexed(tmp_path)


def test_a_program_that_stops_its_helper_ends_too(run: Run, tmp_path: Path) -> None:
    line = f"echo $$ > {tmp_path}/pid; kill -STOP $PPID; sleep 600"

    row = run({"shell": line}, policy={"time_limit": "PT5S"})

    assert (row["state"], row["error"]) == ("failed", "time limit: the program was ended")
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not is_alive(pid), "the program has ended")


def test_a_cancel_ends_the_whole_group(
    engine: sa.Engine, settings: Settings, tmp_path: Path
) -> None:
    operation = made(engine, {"shell": STUBBORN.format(tmp_path)})
    beating = settings.worker.model_copy(update={"heartbeat_s": 0.2})
    settings = settings.model_copy(update={"worker": beating})

    def cancel() -> None:
        until((tmp_path / "child").exists, "the program runs")
        with engine.begin() as connection:
            asked = sa.update(operations).where(operations.c.id == operation)
            connection.execute(asked.values(cancel_requested_at=NOON))

    canceller = threading.Thread(target=cancel)
    canceller.start()
    run_attempt(engine, settings, Registry(), (operation, 1), "tests")
    canceller.join()

    assert row_of(engine, operation)["state"] == "cancelled"
    assert in_unindexed(tmp_path)


def test_a_stopping_worker_ends_the_group_before_it_gives_the_operation_back(
    engine: sa.Engine, settings: Settings, tmp_path: Path
) -> None:
    operation = made(engine, {"shell": STUBBORN.format(tmp_path)})

    def stop() -> None:
        until((tmp_path / "child").exists, "the program runs")
        lease.stopping.value = True

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        run_attempt(engine, settings, Registry(), (operation, 1), "tests")
    finally:
        stopper.join()
        lease.stopping.value = False

    row = row_of(engine, operation)
    assert (row["state"], row["attempt"]) == ("pending", 2)
    assert in_unindexed(tmp_path)


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


def test_a_worker_whose_account_has_no_name_runs_programs(
    engine: sa.Engine, settings: Settings
) -> None:
    nameless = own_namespaces("--map-user=4242", "--map-group=4242")
    operation = made(engine, {"shell": "echo at $HOME as ${LOGNAME-nobody}"})
    environment = {**os.environ, "SCHED_COMMANDS": "shell"}
    for name in ("HOME", "LOGNAME"):
        environment.pop(name, None)
    command = [sys.executable, "-P", "-c", WORKER, str(settings.home), str(operation)]

    subprocess.run([*nameless, *command], env=environment, check=True)

    with reading(engine) as connection:
        (line,) = log_lines(connection, operation)
    assert (row_of(engine, operation)["state"], line["message"]) == ("success", "at / as nobody")


@pytest.mark.parametrize("killed", ["worker", "helper"])
def test_a_killed_worker_leaves_no_child(
    engine: sa.Engine, settings: Settings, tmp_path: Path, killed: str
) -> None:
    operation = made(engine, {"shell": STUBBORN.format(tmp_path)})
    environment = {**os.environ, "SCHED_COMMANDS": "shell"}
    command = [sys.executable, "-P", "-c", WORKER, str(settings.home), str(operation)]
    with subprocess.Popen(command, env=environment) as worker:
        until((tmp_path / "child").exists, "the program runs")
        pid = worker.pid if killed == "worker" else children_of(worker.pid)[0]
        os.kill(pid, signal.SIGKILL)
        worker.wait(30)

    assert in_unindexed(tmp_path)


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def in_unindexed(folder: Path) -> bool:
    """Whether no process writes into the folder any more."""
    sizes = {"": -1}

    def same() -> bool:
        nonlocal sizes
        before, sizes = sizes, {one.name: one.stat().st_size for one in folder.iterdir()}
        threading.Event().wait(0.3)
        return before == sizes

    until(same, "the group has ended")
    return True


WITH_DAY = {"run": ["/bin/true"], "env": {"DAY": "1"}}


def test_a_program_gets_the_variables_that_are_allowed(
    engine: sa.Engine, settings: Settings
) -> None:
    operation = made(engine, WITH_DAY)
    settings = settings.model_copy(update={"commands": ("/bin/true(DAY)",)})

    run_attempt(engine, settings, Registry(), (operation, 1), "tests")

    assert row_of(engine, operation)["state"] == "success", row_of(engine, operation)["error"]


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
    engine: sa.Engine,
    settings: Settings,
    allowed: tuple[str, ...],
    parameters: dict[str, Any],
    why: str,
) -> None:
    operation = made(engine, parameters)
    settings = settings.model_copy(update={"commands": allowed})
    run_attempt(engine, settings, Registry(), (operation, 1), "tests")

    assert why in row_of(engine, operation)["error"]
    saving = replace(author(), commands=allowed)
    with pytest.raises(InvalidAction) as refused:
        create_all(engine, [make_document(name="b", operations={"command": parameters})], saving)
    assert why in str(refused.value)


def test_no_program_runs_for_a_restricted_small_app(engine: sa.Engine, settings: Settings) -> None:
    operation = made(engine, {"run": ["/bin/true"]})
    with engine.begin() as connection:
        tenants.set_trust(connection, DEFAULT_APP.id, RESTRICTED)
    settings = settings.model_copy(update={"commands": ALL})

    run_attempt(engine, settings, Registry(), (operation, 1), "tests")

    assert "--trusted" in row_of(engine, operation)["error"]
