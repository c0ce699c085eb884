"""Commands in a process without what processes usually have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-P", "-m", "minutehand"]


def in_shell(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command by a line of shell in which it is "$@"."""
    shell = ["sh", "-c", script, "sh", *COMMAND, *arguments]
    return subprocess.run(shell, check=False, capture_output=True, text=True, env=dict(os.environ))


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(home: Path, closed: str) -> None:
    done = in_shell(f'"$@" {closed}', "step", "list")

    assert (done.returncode, done.stderr) == (0, "")


def test_a_current_folder_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCHED_HOME", raising=False)
    folder = tmp_path / "gone"

    done = in_shell(f'mkdir "{folder}" && cd "{folder}" && rmdir "{folder}" && "$@"', "status")

    assert (done.returncode, done.stderr) == (
        2, "error: SCHED_HOME: the current folder no longer exists; change to another one\n"
    )  # fmt: skip
