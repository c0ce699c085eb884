"""Write the schedule of a Celery application as JSON, in the application's own environment.

`python -m minutebook export -A shop -o beat.json`, then `minutebook import beat beat.json`. It
needs nothing but Celery 5.2 or later, and Python 3.9 or later.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from minutebook.beat.entries import (
    NOT_STORED,
    OF_A_SCHEDULER,
    add_remarks,
    broken,
    entry_of,
    overrides,
    stored_beside,
)
from minutebook.beat.instants import Ran
from minutebook.beat.messages import is_of_kombu
from minutebook.beat.schedules import class_name, zone_name
from minutebook.beat.stores import (
    DJANGO,
    has_own,
    is_of,
    keeps_entries,
    last_runs,
    scheduler_of,
    stored_entries,
)
from minutebook.error_text import text_of
from minutebook.json_values import said
from minutebook.written import Output, add_output

VERSION = 1
CLEANUP = "celery.backend_cleanup"
NONE: Mapping[str, dt.datetime] = {}
REFUSED = "the application's workers accept {} alone (accept_content), and Minutebook sends JSON"
ACCEPT = "add 'json' to accept_content of the workers, and write the schedule again"


def main(arguments: Sequence[str]) -> int:
    """Write the schedule; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m minutebook export", description=__doc__)
    parser.add_argument("-A", "--app", required=True, help="the application, as for celery -A")
    parser.add_argument("--workdir", help="folder to import it from (default: this one)")
    parser.add_argument(
        "-S",
        "--scheduler",
        help="beat's scheduler, as for celery beat -S (default: beat_scheduler)",
    )
    parser.add_argument(
        "-s", "--schedule", help="beat's schedule file, for when beat last ran each entry"
    )
    add_output(parser)
    asked = parser.parse_args(arguments)
    output = Output(asked.output)
    file = asked.schedule and os.path.abspath(asked.schedule)
    if asked.workdir:
        os.chdir(asked.workdir)
    sys.path.insert(0, os.getcwd())
    from celery.app.utils import find_app

    app = find_app(asked.app)
    output.write(schedule_of(app, asked.scheduler, _last_runs(file) if file else {}))
    return 0


def schedule_of(
    app: Any, scheduler: str | None = None, ran: Mapping[str, dt.datetime] = NONE
) -> dict[str, Any]:
    """Return the schedule of a Celery application, as `minutebook import beat` reads it."""
    import celery

    app.loader.import_default_modules()
    app.finalize()
    entries = _entries(app, scheduler_of(app, scheduler), ran)
    if not _accepts_json(app):
        why = REFUSED.format(", ".join(map(str, app.conf.accept_content)))
        entries = [one if "broken" in one else broken(one["name"], why, ACCEPT) for one in entries]
    return {
        "minutebook_beat": VERSION,
        "celery": celery.__version__,
        "written_at": app.now().astimezone(dt.timezone.utc).isoformat(),
        "timezone": zone_name(app.timezone),
        "broker_options": _broker_options(app),
        "entries": entries,
    }


def _entries(app: Any, scheduler: Any, ran: Mapping[str, dt.datetime]) -> list[dict[str, Any]]:
    """Return the entries that a scheduler stores, and those of `beat_schedule` beside them."""
    from celery.beat import ScheduleEntry

    entries = _stored(app, scheduler)
    stored = {one["name"]: one for one in entries}
    # A row of django-celery-beat is made from what is stored alone.
    kind = ScheduleEntry if is_of(scheduler, DJANGO) else scheduler.Entry
    for name, given in {} if has_own(scheduler) else _all_entries(app).items():
        if (its := stored.get(name)) is not None:
            add_remarks(its, stored_beside(app, name, given, its.get("entry")))
            continue
        entry = entry_of(app, kind, name, given, Ran(ran.get(name)))
        add_remarks(entry, [NOT_STORED] if keeps_entries(scheduler) and name != CLEANUP else [])
        entries.append(entry)
    for entry in entries:
        entry.pop("entry", None)
        add_remarks(entry, [*overrides(scheduler, OF_A_SCHEDULER)])
    return entries


def _accepts_json(app: Any) -> bool:
    """Whether the application's workers take messages in JSON."""
    from kombu.serialization import prepare_accept_content

    return "application/json" in (prepare_accept_content(app.conf.accept_content) or ())


def _stored(app: Any, scheduler: Any) -> list[dict[str, Any]]:
    try:
        return list(stored_entries(app, scheduler))
    except Exception as error:  # of a database's driver, such as a server that is down
        sys.exit(f"error: the entries of {class_name(scheduler)} cannot be read: {text_of(error)}")


def _last_runs(path: str) -> dict[str, dt.datetime]:
    try:
        return last_runs(path)
    except Exception as error:  # of the database's kind
        instead = "name the file of celery beat -s, and stop beat or copy the file first"
        sys.exit(f"error: the schedule file {path} cannot be read: {text_of(error)}; {instead}")


def _broker_options(app: Any) -> dict[str, Any]:
    """Return the options that change where workers look for messages in Redis."""
    given = dict(app.conf.broker_transport_options or {}) if is_of_kombu(app) else {}
    names = ("sep", "priority_steps", "global_keyprefix", "queue_order_strategy")
    found: dict[str, Any] = said(
        "broker_options", {name: given[name] for name in names if name in given}, []
    )
    return found


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
