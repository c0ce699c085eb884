"""The command `minutehand`, with Minutehand's own packages first on the module path.

Otherwise a user's `tasks.py`, `models.py` or `web/` in PYTHONPATH or the working directory would
replace ours.
"""

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parent.parent)


def main() -> None:
    if sys.argv[1:2] == ["beat"]:
        # In the environment of a Celery application, which has nothing else of ours.
        from minutehand import beat

        sys.exit(beat.main(sys.argv[2:]))
    if ROOT in sys.path:
        sys.path.remove(ROOT)
    sys.path.insert(0, ROOT)
    from cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
