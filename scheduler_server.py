"""Start the daemon: `python scheduler_server.py [--home DIR] [--once] [--at INSTANT]`."""

import gc
import sys

# Objects made at the start stay: looking for garbage after every 700 takes a fifth of its time.
gc.set_threshold(200_000)

from processes.daemon import main  # noqa: E402
from processes.init import leave_first_place  # noqa: E402

if __name__ == "__main__":
    leave_first_place()
    code = main(sys.argv[1:])
    # Otherwise Python looks for garbage at exit once more, among all that the start made.
    gc.freeze()
    sys.exit(code)
