import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime import scratch
from tests.servers import temporary_folder

USES_SCRATCH = """
import multiprocessing.util, os, sys
from runtime.scratch import use_scratch
folder = use_scratch("worker")
pool = multiprocessing.util.get_temp_dir()
assert pool.startswith(str(folder)), pool
if sys.argv[1] == "fork" and os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print(folder, flush=True)
if sys.argv[1] != "ends":
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = temporary_folder()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    shutil.rmtree(folder)


def start(how: str) -> tuple[subprocess.Popen[bytes], Path]:
    command = [sys.executable, "-P", "-c", USES_SCRATCH, how]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process: subprocess.Popen[bytes] = subprocess.Popen(command, **pipes)  # type: ignore[call-overload]
    assert process.stdout
    return process, Path(process.stdout.readline().decode().strip())


def test_a_killed_process_leaves_a_folder_that_the_next_sweep_removes() -> None:
    process, folder = start("waits")
    assert scratch.sweep() == []
    process.kill()
    process.communicate()

    assert scratch.sweep() == [folder]
    assert not folder.exists()


def test_a_folder_stays_as_long_as_a_child_of_its_process_lives() -> None:
    process, folder = start("fork")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert scratch.sweep() == []
    process.communicate()

    assert scratch.sweep() == [folder]


def test_a_process_that_ends_removes_its_folder() -> None:
    process, folder = start("ends")
    process.communicate()

    assert not folder.exists()


def test_what_is_not_ours_stays(temporary: Path) -> None:
    kept = [temporary / "minutebook-notes", temporary / f"minutebook-{os.getuid() + 1}-worker-x"]
    for folder in kept:
        folder.mkdir()
    (temporary / f"{scratch.prefix()}file").touch()
    (temporary / f"{scratch.prefix()}link").symlink_to(kept[0])

    assert scratch.sweep() == []
    assert all(folder.is_dir() for folder in kept)


def test_a_server_that_outlived_its_parent_keeps_its_folder(temporary: Path) -> None:
    folder = temporary / f"{scratch.prefix()}0123456789abcdef"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(folder / "broker.sock"))
        server.listen()
        assert scratch.sweep() == []

    assert scratch.sweep() == [folder]
