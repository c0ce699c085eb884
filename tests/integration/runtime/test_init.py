"""The first process of a container: it adopts orphans, passes signals on, and ends as its child."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.namespaces import own_namespaces

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


@pytest.mark.skipif(sys.platform != "linux", reason="a container of Linux")
def test_an_orphan_leaves_no_entry_behind() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ADOPTS + LEAVES_AN_ORPHAN],
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )

    assert ended.stdout == b"reaped\n"


@pytest.mark.skipif(sys.platform != "linux", reason="a container of Linux")
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
