"""`minutebook exec` as cron calls it: a real process, its program, and the record."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cli.main import run
from models.errors import NotFound
from models.tables import operations
from processes.foreground import START_S, Foreground, Recording
from runtime.clock import monotonic
from runtime.config import Settings, load_settings
from runtime.database import make_engine, reading
from tests.acceptance.processes import until
from views.foreign_runs import Recorded

pytestmark = pytest.mark.only_here


def command(*program: str, name: str = "backup") -> list[str]:
    return [sys.executable, "-P", "-m", "minutebook", "exec", name, "--", *program]


def executed(
    *program: str, name: str = "backup", text: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*program, name=name), input=text, capture_output=True, text=True, check=False
    )


def recorded(home: Path) -> list[dict[str, Any]]:
    engine = make_engine(load_settings(home))
    with reading(engine) as connection:
        query = sa.select(operations).order_by(operations.c.recorded_at)
        found = [dict(row) for row in connection.execute(query).mappings()]
    engine.dispose()
    return found


def record_in(
    store: str, home_of: Callable[[str], Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let commands record on that store; SQLite is the default of a home folder."""
    if store == "postgresql":
        url = home_of(store).database_url.get_secret_value()
        monkeypatch.setenv("SCHED_DATABASE_URL", url)


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_a_run_passes_everything_through_and_is_on_record(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    home_of: Callable[[str], Settings],
    store: str,
) -> None:
    record_in(store, home_of, monkeypatch)
    line = "umask; cat; echo $MINUTEBOOK_OPERATION_ID; echo no >&2; exit 3"

    failed = executed("sh", "-c", line, text="in\n")
    done = executed("true")

    first, second = recorded(home)
    assert failed.returncode == 3
    assert failed.stdout == f"{os.umask(os.umask(0o022)):04o}\nin\n{first['id']}\n"
    assert failed.stderr == "no\n"
    assert (first["state"], first["error"], first["cause"]) == ("failed", "exit code 3", "manual")
    assert first["steps"][0]["details"]["exit_code"] == 3
    assert (done.returncode, done.stderr, second["state"]) == (0, "", "success")
    assert first["action_uid"] == second["action_uid"]


def test_a_program_runs_from_a_folder_that_was_removed(home: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'cd {gone} && rmdir {gone} && exec "$@"'

    done = subprocess.run(
        ["sh", "-c", line, "sh", *command("true")], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert [row["state"] for row in recorded(home)] == ["success"]


@pytest.mark.parametrize(
    ("program", "code"), [(("no-such-program",), 127), (("/etc/passwd",), 126)]
)
def test_a_program_that_cannot_start_has_the_code_of_a_shell(
    home: Path, program: tuple[str, ...], code: int
) -> None:
    done = executed(*program)

    assert done.returncode == code
    assert f"warning: {program[0]}: " in done.stderr
    assert recorded(home)[0]["error"] == f"exit code {code}"


def test_signals_reach_the_program(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    line = f"trap 'exit 9' TERM; touch {file}; while :; do sleep 0.05; done"
    with subprocess.Popen(command("sh", "-c", line)) as wrapper:
        until(file.exists, "the program runs")
        wrapper.send_signal(signal.SIGTERM)
        wrapper.wait(60)

    assert wrapper.returncode == 9
    assert recorded(home)[0]["error"] == "exit code 9"


def test_a_signal_before_the_start_is_not_lost() -> None:
    def away() -> Recorded:
        raise NotFound("there is no installation")

    early = Foreground(["sleep", "600"], Recording(away), print)
    early._forward(signal.SIGTERM, None)

    assert early.run(0o022) == 128 + signal.SIGTERM


def test_what_nohup_ignores_the_program_ignores(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    line = f"touch {file}; read _; exit 9"
    nohup = ["nohup", *command("sh", "-c", line)]
    with subprocess.Popen(nohup, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as wrapper:
        until(file.exists, "the program runs")
        wrapper.send_signal(signal.SIGHUP)
        wrapper.communicate(b"\n", 60)

    assert wrapper.returncode == 9


def test_a_cancel_ends_the_program(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHED_WORKER_HEARTBEAT_S", "0.3")
    with subprocess.Popen(command("sh", "-c", f"touch {tmp_path}/runs; exec sleep 600")) as wrapper:
        until((tmp_path / "runs").exists, "the program runs")
        assert run(["operation", "cancel", str(recorded(home)[0]["id"])]) == 0
        wrapper.wait(60)

    assert wrapper.returncode == 128 + signal.SIGTERM
    assert recorded(home)[0]["state"] == "cancelled"


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_a_locked_database_keeps_no_program_waiting_and_gets_the_record_afterwards(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    home_of: Callable[[str], Settings],
    store: str,
) -> None:
    record_in(store, home_of, monkeypatch)
    assert executed("true").returncode == 0
    engine = make_engine(load_settings(home))
    line = f"echo ${{MINUTEBOOK_OPERATION_ID:-none}}; touch {tmp_path}/runs; exit 5"

    with engine.begin() as connection:
        if store == "postgresql":
            connection.exec_driver_sql("LOCK TABLE actions, operations")
        began = monotonic()
        wrapper = subprocess.Popen(command("sh", "-c", line), stdout=subprocess.PIPE, text=True)
        until((tmp_path / "runs").exists, "the program runs")
        waited_s = monotonic() - began
        assert wrapper.poll() is None
    shown, _ = wrapper.communicate(timeout=60)
    engine.dispose()

    # With its own start, on a busy machine; a locked PostgreSQL answers after 60 seconds.
    assert START_S <= waited_s < 30
    assert (wrapper.returncode, shown) == (5, "none\n")
    first, late = recorded(home)
    assert (late["state"], late["error"]) == ("failed", "exit code 5")
    assert late["action_uid"] == first["action_uid"]
    assert late["steps"][0]["details"]["duration_s"] < START_S


@pytest.mark.parametrize("away", ["missing", "unreachable", "broken"])
def test_the_program_runs_without_a_database(
    home: Path, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    match away:
        case "missing":
            monkeypatch.setenv("SCHED_HOME", str(home / "other"))
        case "unreachable":
            monkeypatch.setenv("SCHED_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
        case "broken":
            (home / "minutebook.db").write_text("no database at all" * 100)

    done = executed("sh", "-c", "echo ran; exit 4")

    assert (done.returncode, done.stdout) == (4, "ran\n")
    assert done.stderr.startswith("minutebook exec: warning: this run is not recorded: ")
    assert len(done.stderr.splitlines()) == 1
