"""Write the schedule of a Celery application as JSON, in the application's own environment.

`python -m minutebook beat -A shop > beat.json`, then `minutebook import beat beat.json`. It needs
nothing but Celery 5.2 or later, and Python 3.9 or later.
"""

import argparse
import datetime as dt
import json
import os
import sys
from typing import Any, Dict, List, Sequence  # noqa: UP035 - Python 3.9

VERSION = 1
FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
# Options of a task that beat's `apply_async` adds to those of an entry.
OF_THE_TASK = ("queue", "exchange", "routing_key", "priority", "expires")
CLEANUP = "celery.backend_cleanup"


def main(arguments: Sequence[str]) -> int:
    """Print the schedule; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m minutebook beat", description=__doc__)
    parser.add_argument("-A", "--app", required=True, help="the application, as for celery -A")
    parser.add_argument("--workdir", help="folder to import it from (default: this one)")
    asked = parser.parse_args(arguments)
    if asked.workdir:
        os.chdir(asked.workdir)
    sys.path.insert(0, os.getcwd())
    from celery.app.utils import find_app

    json.dump(schedule_of(find_app(asked.app)), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
    return 0


def schedule_of(app: Any) -> Dict[str, Any]:  # noqa: UP006
    """Return the schedule of a Celery application, as `minutebook import beat` reads it."""
    import celery

    app.loader.import_default_modules()
    app.finalize()
    entries = [_entry(app, name, one) for name, one in _all_entries(app).items()]
    return {
        "minutebook_beat": VERSION,
        "celery": celery.__version__,
        "timezone": _zone(app),
        "entries": entries,
    }


def _all_entries(app: Any) -> Dict[str, Any]:  # noqa: UP006
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


def _zone(app: Any) -> str:
    zone = app.timezone
    return str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone)


def _entry(app: Any, name: str, entry: Any) -> Dict[str, Any]:  # noqa: UP006
    options = _routed(app, entry["task"], dict(entry.get("options") or {}))
    unsaid: List[str] = []  # noqa: UP006
    parts = {
        "args": said("args", list(entry.get("args") or ()), unsaid),
        "kwargs": said("kwargs", dict(entry.get("kwargs") or {}), unsaid),
        "options": said("options", options, unsaid),
    }
    schedule = _schedule(entry["schedule"], bool(entry.get("relative")))
    return {"name": name, "task": entry["task"], **parts, "schedule": schedule, "unsaid": unsaid}


def _routed(app: Any, task: str, options: Dict[str, Any]) -> Dict[str, Any]:  # noqa: UP006
    """Return what beat sends a task with: the task's options, the entry's, and its queue."""
    known = app.tasks.get(task)
    of_task = {name: getattr(known, name, None) for name in OF_THE_TASK} if known else {}
    merged = {name: value for name, value in {**of_task, **options}.items() if value is not None}
    queue = app.amqp.router.route(dict(merged), task).get("queue") or app.conf.task_default_queue
    bound_to = merged.pop("exchange", None), merged.pop("routing_key", None)
    # Either of the two alone has no effect beside a queue.
    if not all(bound_to):
        return {**merged, "queue": getattr(queue, "name", queue)}
    exchange, key = getattr(bound_to[0], "name", bound_to[0]), bound_to[1]
    for known_queue in app.amqp.queues.values():
        if (known_queue.exchange.name, known_queue.routing_key) == (exchange, key):
            return {**merged, "queue": known_queue.name}
    merged.pop("queue", None)
    return {**merged, "exchange": exchange, "routing_key": key}


def said(part: str, value: Any, unsaid: List[str]) -> Any:  # noqa: UP006
    """Return a value as JSON holds it; add what JSON cannot hold to `unsaid`."""
    if isinstance(value, dict):
        return {str(key): said(f"{part}.{key}", one, unsaid) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [said(f"{part}[{number}]", one, unsaid) for number, one in enumerate(value)]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if part == "options.expires" and isinstance(value, dt.timedelta):
        return value.total_seconds()
    unsaid.append(f"{part}: {value!r}"[:200])
    return None


def _schedule(given: Any, relative: bool) -> Dict[str, Any]:  # noqa: UP006
    from celery import schedules

    schedule: Any = schedules.maybe_schedule(given, relative)
    if isinstance(schedule, schedules.crontab):
        return {"crontab": {name: _field(schedule, name) for name in FIELDS}}
    if isinstance(schedule, schedules.solar):
        return {"solar": {"event": schedule.event, "lat": schedule.lat, "lon": schedule.lon}}
    if type(schedule).__name__ == "schedule":
        found: dict[str, Any] = {"every_s": schedule.run_every.total_seconds()}
        return {**found, "relative": True} if schedule.relative else found
    return {"other": repr(given)[:200]}


def _field(schedule: Any, name: str) -> str:
    """Return a field as it was written; sets and lists as their values."""
    written = getattr(schedule, f"_orig_{name}", None)
    if isinstance(written, (str, int)):
        return str(written)
    return ",".join(str(one) for one in sorted(getattr(schedule, name)))
