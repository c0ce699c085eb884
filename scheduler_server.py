"""Start the daemon: `python scheduler_server.py [--home DIR] [--once] [--at INSTANT]`."""

import sys

from processes.daemon import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
