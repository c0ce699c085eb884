"""The command `minutebook`, with Minutebook's own packages first on the module path.

Otherwise a user's `tasks.py`, `models.py` or `web/` in PYTHONPATH or the working directory would
replace ours.
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

ROOT = str(Path(__file__).resolve().parent.parent)

CLIENT_ALONE = (
    "error: this environment has only minutebook-client; the command is part of the server: use "
    "that of its environment, or make one as docs/how-to/install.md of the source shows"
)
# 128 plus the number of SIGINT, as in shells.
INTERRUPTED = 130
# Modules that write another scheduler's entries for `minutebook import`, by their commands.
WRITERS = {"apscheduler": "apscheduler", "export": "beat"}


def main() -> None:
    if (writer := _writer(sys.argv[1:])) is not None:
        # An application that draws a minute while it is imported draws the same at each export.
        random.seed(0)
        # In the environment of an application, which has nothing else of ours.
        sys.exit(import_module(f"minutebook.{writer}").main(sys.argv[2:]))
    # Objects made at the start stay, and most commands end with fewer than this: looking for
    # garbage after every 700 objects, Python's default, takes a fifth of their time.
    gc.set_threshold(200_000)
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


def is_server_here() -> bool:
    """Whether this environment has the server too: its packages lie beside this one."""
    return (Path(ROOT) / "cli" / "main.py").exists()


def _writer(arguments: Sequence[str]) -> str | None:
    """Return the module that writes entries; `export` without an application is the server's."""
    command, rest = next(iter(arguments), ""), arguments[1:]
    names_one = any(one.startswith("-A") for one in rest)
    is_of_server = command == "export" and is_server_here() and not names_one
    return None if is_of_server else WRITERS.get(command)


if __name__ == "__main__":
    main()
