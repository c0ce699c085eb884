"""A child whose parent is gone ends, even if it hangs on the way; a home folder is locked."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from models.errors import SchedulerError
from processes.up import down
from runtime.config import load_settings
from runtime.supervisor import PARENT, AlreadyRunning, Child, folder_lock

CHILD = """
import signal, sys
from runtime.supervisor import end_with_parent
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
end_with_parent(0.2)
while True:
    signal.pause()
"""


@pytest.mark.parametrize(("kind", "number"), [("obeys", signal.SIGTERM), ("deaf", signal.SIGKILL)])
def test_a_child_whose_parent_is_gone_ends(kind: str, number: int) -> None:
    # Its parent is this process, and not the one that it is told.
    environment = {**os.environ, PARENT: str(os.getppid())}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, kind], env=environment, start_new_session=True
    )

    assert child.wait(60) == -number


def test_a_child_that_cannot_be_started_again_does_not_end_its_parent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    child = Child("worker", [str(tmp_path / "gone")])

    child.keep_alive()

    assert not child.is_alive
    assert "worker cannot be started: " in caplog.text


def test_a_locked_home_folder_names_its_holder(tmp_path: Path) -> None:
    with (
        folder_lock(tmp_path),
        pytest.raises(AlreadyRunning, match=f"with pid {os.getpid()}"),
        folder_lock(tmp_path),
    ):
        pass


def test_no_process_gets_a_signal_for_one_of_another_container(tmp_path: Path) -> None:
    with folder_lock(tmp_path) as file:
        # The same number there; a signal would end this test.
        file.write("-elsewhere")
        file.flush()

        with pytest.raises(SchedulerError, match="of another container or machine; run"):
            down(load_settings(tmp_path, {}))


def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="cannot be locked") as raised, folder_lock(tmp_path):
        pass

    assert raised.value.filename == str(tmp_path / "up.lock")
