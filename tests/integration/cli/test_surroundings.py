"""Commands in a process without what processes usually have."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from tests.namespaces import own_namespaces

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

    done = subprocess.run(
        [*alone, sys.executable, "-c", check],
        check=False,
        capture_output=True,
        text=True,
    )

    assert (
        "Read-only file system; mount a file system that can be written at /dev/shm" in done.stderr
    )


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
