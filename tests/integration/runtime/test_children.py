"""Parents and children: orphans, signals, the end of a parent, a locked home folder."""

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
from tests.namespaces import own_namespaces

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


def test_a_disk_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="cannot be locked") as raised, folder_lock(tmp_path):
        pass

    assert raised.value.filename == str(tmp_path / "up.lock")


ROOT = Path(__file__).resolve().parents[3]
# A subreaper adopts orphans as the first process of a container does.
ADOPTS = """
import ctypes, os, signal, subprocess, sys
from processes.init import go_on_as_child
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
go_on_as_child()
"""
LEAVES_AN_ORPHAN = """
orphan = subprocess.check_output(["sh", "-c", "sleep 0.1 >/dev/null & echo $!"], text=True).strip()
while os.path.exists(f"/proc/{orphan}"):
    pass
print("reaped")
"""
WAITS = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
signal.pause()
"""


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="a container of Linux")


@on_linux
def test_an_orphan_leaves_no_entry_behind() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ADOPTS + LEAVES_AN_ORPHAN],
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )

    assert ended.stdout == b"reaped\n"


@on_linux
def test_a_signal_reaches_the_child_whose_exit_code_is_kept() -> None:
    first = subprocess.Popen([sys.executable, "-c", ADOPTS + WAITS], stdout=subprocess.PIPE)
    assert first.stdout is not None
    with first.stdout as output:
        output.readline()
        first.send_signal(signal.SIGTERM)

        assert first.wait(60) == 7


def test_a_command_leaves_the_first_place_in_a_container() -> None:
    container = own_namespaces("--map-root-user", "--pid", "--fork", "--mount-proc")
    runs = "main.run = lambda _: 7 if os.getpid() != 1 else 1; sys.exit(main.main(()))"
    program = f"import os, sys; from cli import main; {runs}"

    ended = subprocess.run(
        [*container, sys.executable, "-c", program], cwd=ROOT, timeout=60, check=False
    )

    assert ended.returncode == 7
