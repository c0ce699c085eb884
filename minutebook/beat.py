"""Write the schedule of a Celery application as JSON, in the application's own environment.

`python -m minutebook beat -A shop -o beat.json`, then `minutebook import beat beat.json`. It needs
nothing but Celery 5.2 or later, and Python 3.9 or later.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from minutebook.beat_entries import entry_of
from minutebook.beat_schedules import zone_name
from minutebook.written import Output, add_output

VERSION = 1
CLEANUP = "celery.backend_cleanup"


def main(arguments: Sequence[str]) -> int:
    """Write the schedule; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m minutebook beat", description=__doc__)
    parser.add_argument("-A", "--app", required=True, help="the application, as for celery -A")
    parser.add_argument("--workdir", help="folder to import it from (default: this one)")
    add_output(parser)
    asked = parser.parse_args(arguments)
    output = Output(asked.output)
    if asked.workdir:
        os.chdir(asked.workdir)
    sys.path.insert(0, os.getcwd())
    from celery.app.utils import find_app

    output.write(schedule_of(find_app(asked.app)))
    return 0


def schedule_of(app: Any) -> dict[str, Any]:
    """Return the schedule of a Celery application, as `minutebook import beat` reads it."""
    import celery

    app.loader.import_default_modules()
    app.finalize()
    return {
        "minutebook_beat": VERSION,
        "celery": celery.__version__,
        "timezone": zone_name(app.timezone),
        "entries": [entry_of(app, name, one) for name, one in _all_entries(app).items()],
    }


def _all_entries(app: Any) -> dict[Any, Any]:
    """Return the entries of beat, with the one that beat adds itself."""
    found = dict(app.conf.beat_schedule or {})
    # Without a result backend the task cleans up nothing.
    keeps = app.conf.result_backend and not app.backend.supports_autoexpire
    if keeps and app.conf.result_expires and CLEANUP not in found:
        from celery.schedules import crontab

        found[CLEANUP] = {
            "task": CLEANUP,
            "schedule": crontab("0", "4", "*"),
            "options": {"expires": 12 * 3600},
        }
    return found
