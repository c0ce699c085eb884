"""Start the daemon: `python scheduler_server.py [--home DIR] [--once] [--at INSTANT]`."""

import gc
import sys

# What a start makes stays: to look for garbage after every 700 objects would take a tenth of it.
gc.set_threshold(50_000)

from processes.daemon import main  # noqa: E402
from processes.init import leave_first_place  # noqa: E402

if __name__ == "__main__":
    leave_first_place()
    code = main(sys.argv[1:])
    # Python's end looks for garbage once more, among all that the start made.
    gc.freeze()
    sys.exit(code)
