"""Write the jobs of APScheduler 3 as JSON, in the application's own environment.

`python -m minutebook apscheduler -s shop.schedule:scheduler > jobs.json`, then
`minutebook import apscheduler jobs.json`. It needs nothing but APScheduler 3, and Python 3.9 or
later.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import importlib
import inspect
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

from minutebook.apscheduler_fires import is_asked, next_fires, utc_now
from minutebook.beat.sent import task_of
from minutebook.error_text import text_of
from minutebook.json_values import altered, said, shown
from minutebook.written import Output, add_output

VERSION = 1
IN_A_FUNCTION = (
    "if a function makes the scheduler, write a module that calls it, such as scheduler = make(), "
    "and name that"
)
GUARD = (
    "note: {} starts its scheduler while it is imported; nothing is started here. If it then waits "
    'and this command does not end, begin that part with `if __name__ == "__main__":`\n'
)
UNNAMED = "write a function of a module, and schedule that"
CORRECT = "correct it in the application, and write it again"
# In place of the next run of a job that is in no store yet; None is that of a paused one.
NOT_ADDED = ...
MINUTE = dt.timedelta(minutes=1)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
POSITIONS = ("1st", "2nd", "3rd", "4th", "5th", "last")


def main(arguments: Sequence[str]) -> int:
    """Print the jobs; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m minutebook apscheduler", description=__doc__)
    parser.add_argument(
        "-s", "--scheduler", required=True, help="the scheduler, as module:attribute"
    )
    parser.add_argument("--workdir", help="folder to import it from (default: this one)")
    add_output(parser)
    asked = parser.parse_args(arguments)
    module, _, attribute = asked.scheduler.partition(":")
    if not attribute:
        parser.error("write the scheduler as module:attribute, such as shop.schedule:scheduler")
    output = Output(asked.output)
    if asked.workdir:
        os.chdir(asked.workdir)
    sys.path.insert(0, os.getcwd())
    scheduler = _scheduler(module, attribute)
    if not hasattr(scheduler, "get_jobs"):
        kind = type(scheduler).__name__
        parser.error(f"{asked.scheduler} is a {kind}, not a scheduler; {IN_A_FUNCTION}")
    output.write(jobs_of(scheduler))
    _leave_threads()
    return 0


def _leave_threads() -> None:
    """End now if a thread of the application goes on: Python would wait for it."""
    others = (one for one in threading.enumerate() if one is not threading.current_thread())
    if any(not one.daemon for one in others):
        sys.stderr.flush()
        os._exit(0)


def _scheduler(module: str, attribute: str) -> Any:
    """Return the scheduler of a module, which is kept from starting while it is imported."""
    _keep_from_starting(module)
    try:
        return reduce(getattr, attribute.split("."), importlib.import_module(module))
    except AttributeError as error:
        raise SystemExit(f"error: {error}; {IN_A_FUNCTION}") from None


def _keep_from_starting(module: str) -> None:
    """Let no scheduler start: a module may start its own, which would run the jobs."""
    import pkgutil

    from apscheduler import schedulers
    from apscheduler.schedulers.base import BaseScheduler

    def not_started(_scheduler: Any, *_args: Any, **_kwargs: Any) -> None:
        sys.stderr.write(GUARD.format(module))

    for one in pkgutil.iter_modules(schedulers.__path__):
        # One for a framework that is not there cannot be imported.
        with contextlib.suppress(ImportError):
            importlib.import_module(f"{schedulers.__name__}.{one.name}")
    # A scheduler that is only read refuses the others, because it does not run.
    instead = {"start": not_started, **dict.fromkeys(("shutdown", "pause", "resume"), _nothing)}
    kinds: list[Any] = [BaseScheduler]
    for kind in kinds:
        kinds += kind.__subclasses__()
        for name in instead.keys() & vars(kind).keys():
            setattr(kind, name, instead[name])


def _nothing(*_args: Any, **_kwargs: Any) -> None: ...


def jobs_of(scheduler: Any) -> dict[str, Any]:
    """Return the jobs of a scheduler, started or not, as `minutebook import apscheduler` reads."""
    import apscheduler

    now = utc_now()
    return {
        "minutebook_apscheduler": VERSION,
        "apscheduler": apscheduler.version,
        "written_at": now.isoformat(),
        "jobs": [_job(scheduler, one, now) for one in _all_jobs(scheduler)],
    }


def _all_jobs(scheduler: Any) -> list[Any]:
    """Return the jobs of a scheduler; of one that has not started, those in its stores too."""
    found: list[Any] = scheduler.get_jobs()
    if scheduler.running:
        return found
    ids = {one.id for one in found}
    return [*(one for one in _stored_jobs(scheduler) if one.id not in ids), *found]


def _stored_jobs(scheduler: Any) -> Iterator[Any]:
    """Yield the jobs in the stores of a scheduler that has not started."""
    for alias, store in scheduler._jobstores.items():
        # A store removes each job that it cannot restore.
        if hasattr(store, "_reconstitute_job"):
            store._reconstitute_job = partial(_restored, store._reconstitute_job)
        try:
            store.start(scheduler, alias)
            yield from store.get_all_jobs()
        except Exception as error:  # of a database's driver, such as a server that is down
            sys.exit(f"error: the jobs of the store {alias!r} cannot be read: {text_of(error)}")


class _Unrestored(NamedTuple):
    """A job that its store cannot restore: its function is gone, for example."""

    id: str
    why: str
    # By which stores order their jobs.
    next_run_time: None = None


def _restored(restore: Callable[[bytes], Any], state: bytes) -> Any:
    try:
        return restore(state)
    except Exception as error:
        with contextlib.suppress(Exception):
            # The application itself unpickles it, in the same environment.
            return _Unrestored(str(pickle.loads(state)["id"]), text_of(error))  # noqa: S301
        return _Unrestored("a stored job", text_of(error))


def _job(scheduler: Any, job: Any, now: dt.datetime) -> dict[str, Any]:
    """Return a job; one that cannot be described says why, and stops no other."""
    if isinstance(job, _Unrestored):
        lost = f"its store cannot restore it: {job.why}"
        return _broken(job.id, lost, "add it anew, with its function")
    try:
        is_anew = not hasattr(job, "next_run_time") and _is_anew(job.trigger)
        made = _described(scheduler, job)
        made.update(task_of(job.func, job.args, job.kwargs, made["unsaid"]))
        grace_s = made.get("misfire_grace_time")
        made.update({"begins_anew": True} if is_anew else _next_of(job, grace_s, now))
    except Exception as error:
        instead = getattr(error, "instead", CORRECT)
        return _broken(str(job.id), f"it cannot be read: {text_of(error)}", instead)
    why = None if "task" in made else _why_not_run(job)
    return made if why is None else {**made, **_broken(made["id"], why)}


def _broken(id: str, why: str, instead: str = UNNAMED) -> dict[str, Any]:
    blank = {"id": id, "name": "", "func": "", "trigger": {}}
    return {**blank, "broken": why[:500], "instead": instead}


def _why_not_run(job: Any) -> str | None:
    """Return why another process cannot run the function of a job; None if one can."""
    from apscheduler.util import ref_to_obj

    if inspect.iscoroutinefunction(job.func):
        return "its function is a coroutine, which only an event loop runs"
    # Of a method, a lambda, a partial, or a function in another one there is no such reference.
    with contextlib.suppress(LookupError, TypeError):
        if job.func_ref and ref_to_obj(job.func_ref) == job.func:
            return None
    return f"no other process finds its function {shown(job.func)} by a name"


def _is_anew(trigger: Any) -> bool:
    """Whether an interval was given no beginning: APScheduler counts it from this minute."""
    if type(trigger).__name__ != "IntervalTrigger":
        return False
    seconds = trigger.interval.total_seconds()
    made_now = type(trigger)(seconds=seconds, timezone=trigger.timezone)
    return bool(abs(made_now.start_date - trigger.start_date) < MINUTE)


def _described(scheduler: Any, job: Any) -> dict[str, Any]:
    """Return a job as JSON holds it; one of a scheduler that has not started lacks its defaults."""
    defaults = getattr(scheduler, "_job_defaults", {})
    names = ("misfire_grace_time", "coalesce", "max_instances")
    own = {name: getattr(job, name, defaults.get(name)) for name in names}
    next_run_time = getattr(job, "next_run_time", NOT_ADDED)
    unsaid: list[str] = []
    return {
        "id": str(job.id),
        "name": str(job.name),
        "func": str(job.func_ref or repr(job.func)),
        "args": said("args", list(job.args), unsaid),
        "kwargs": said("kwargs", dict(job.kwargs), unsaid),
        "trigger": _trigger(job.trigger),
        **{name: one for name, one in own.items() if one is not None},
        "paused": next_run_time is None,
        **(
            {} if next_run_time in (None, NOT_ADDED) else {"next_run_time": _instant(next_run_time)}
        ),
        "unsaid": unsaid,
        "altered": [*altered("args", list(job.args)), *altered("kwargs", job.kwargs)],
    }


def _next_of(job: Any, grace_s: int | None, now: dt.datetime) -> dict[str, Any]:
    """Return when a job runs next, by its own trigger; nothing if it is paused, or not known."""
    at = getattr(job, "next_run_time", NOT_ADDED)
    if at is None or not is_asked(job.trigger):
        return {}
    found = next_fires(job.trigger, None if at is NOT_ADDED else at, now, grace_s)
    return {"next_at": [at.isoformat() for at in found]}


def _trigger(trigger: Any) -> dict[str, Any]:
    """Return a trigger; classes are known by their names, because their modules may be absent."""
    kind = type(trigger).__name__
    if kind == "DateTrigger":
        return {"type": "date", "run_date": _instant(trigger.run_date)}
    if kind == "CalendarIntervalTrigger":
        return {"type": "calendar", **_calendar(trigger), "jitter": trigger.jitter}
    if kind in ("OrTrigger", "AndTrigger"):
        inner = [_trigger(one) for one in trigger.triggers]
        return {
            "type": kind[:-7].lower(),
            "triggers": inner,
            "jitter": getattr(trigger, "jitter", None),
        }
    if kind not in ("CronTrigger", "IntervalTrigger"):
        return {"type": "other", "text": kind}
    bounds = {
        "start_date": _instant(trigger.start_date),
        "end_date": _instant(trigger.end_date),
        "jitter": getattr(trigger, "jitter", None),
    }
    if kind == "IntervalTrigger":
        return {"type": "interval", "seconds": trigger.interval.total_seconds(), **bounds}
    parts: Sequence[Any] = trigger.fields
    fields = {str(one.name): ",".join(map(_expression, one.expressions)) for one in parts}
    return {"type": "cron", "fields": fields, "timezone": _zone(trigger.timezone), **bounds}


def _calendar(trigger: Any) -> dict[str, Any]:
    clock, ends = trigger._time, trigger.end_date
    return {
        "interval": [trigger.years, trigger.months, trigger.weeks, trigger.days],
        "time": [clock.hour, clock.minute, clock.second],
        "timezone": _zone(trigger.timezone),
        "start_date": trigger.start_date.isoformat(),
        "end_date": None if ends is None else ends.isoformat(),
    }


def _expression(one: Any) -> str:
    kind = type(one).__name__
    if kind == "LastDayOfMonthExpression":
        return "last"
    if kind == "WeekdayPositionExpression":
        return f"{POSITIONS[one.option_num]} {WEEKDAYS[one.weekday]}"
    step = f"/{int(one.step)}" if one.step else ""
    if kind == "AllExpression":
        return "*" + step
    first, last = int(one.first), one.last
    if last is None and kind != "RangeExpression":
        last = first
    return (str(first) if last in (None, first) else f"{first}-{int(last)}") + step


def _zone(zone: Any) -> str | None:
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if name is None and zone.utcoffset(None) == dt.timedelta(0):
        return "UTC"
    return name and str(name)


def _instant(at: Any) -> str | None:
    return None if at is None else at.astimezone(dt.timezone.utc).isoformat()
