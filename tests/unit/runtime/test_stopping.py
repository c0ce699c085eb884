"""A signal may come at any moment: also while the thread that it interrupts begins to wait."""

import subprocess
import sys
from threading import Thread

from runtime.clock import monotonic
from runtime.stopping import Stop

# A handler that waits for a lock of its own thread hangs within a tenth of these waits.
WAITS = 20_000
SIGNALLED = f"""
import signal
from runtime.stopping import Stop

stops = [Stop()]
signal.signal(signal.SIGALRM, lambda *_: stops[-1].set())
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.00013)
for number in range({WAITS}):
    stops[:] = [Stop()]
    while not stops[-1].wait(0.0001):
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_no_signal_hangs_a_thread_that_waits() -> None:
    done = subprocess.run([sys.executable, "-c", SIGNALLED], check=False, timeout=60)

    assert done.returncode == 0


def test_a_wait_ends_when_it_is_set_or_after_its_time() -> None:
    stop = Stop()

    assert (stop.is_set(), stop.wait(0.01), stop.wait(-1)) == (False, False, False)
    began = monotonic()
    other = Thread(target=stop.set)
    other.start()
    assert stop.wait(30)
    other.join()
    assert (stop.is_set(), stop.wait()) == (True, True)
    assert monotonic() - began < 20
