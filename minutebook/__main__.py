"""The command `minutebook`, with Minutebook's own packages first on the module path.

Otherwise a user's `tasks.py`, `models.py` or `web/` in PYTHONPATH or the working directory would
replace ours.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from pathlib import Path

from minutebook.agent_place import is_server_here

ROOT = str(Path(__file__).resolve().parent.parent)

CLIENT_ALONE = (
    "error: this environment has only minutebook-client; the command is part of the server: use "
    "that of its environment, or make one as docs/how-to/install.md of the source shows"
)
# 128 plus the number of SIGINT, as in shells.
INTERRUPTED = 130
# Commands that write another scheduler's entries for `minutebook import`.
WRITERS = (["beat"], ["apscheduler"])


def main() -> None:
    if sys.argv[1:2] in WRITERS:
        # In the environment of an application, which has nothing else of ours.
        writer = import_module(f"minutebook.{sys.argv[1]}")
        sys.exit(writer.main(sys.argv[2:]))
    # Objects made at the start stay: looking for garbage after every 700 objects, Python's default,
    # takes a seventh of a command's time.
    gc.set_threshold(50_000)
    if ROOT in sys.path:
        sys.path.remove(ROOT)
    sys.path.insert(0, ROOT)
    if not is_server_here():
        sys.exit(CLIENT_ALONE)
    try:
        from cli.main import main as run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # Raised while modules load, or while a command closes what it opened.
        code = INTERRUPTED
    # Otherwise Python looks for garbage at exit once more, among all that the start made.
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
