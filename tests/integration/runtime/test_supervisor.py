"""A child whose parent is gone ends, even if it hangs on the way."""

import os
import signal
import subprocess
import sys

import pytest

from runtime.supervisor import PARENT

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
