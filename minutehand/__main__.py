"""The command `minutehand`, with Minutehand's own packages first on the module path.

Otherwise a user's `tasks.py`, `models.py` or `web/` in PYTHONPATH or the working directory would
replace ours.
"""

import gc
import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parent.parent)


def main() -> None:
    # What a start makes stays: to look for garbage after every 700 objects, as is Python's default,
    # takes a seventh of a command's time.
    gc.set_threshold(50_000)
    if ROOT in sys.path:
        sys.path.remove(ROOT)
    sys.path.insert(0, ROOT)
    from cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
