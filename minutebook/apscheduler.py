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
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import reduce
from types import FrameType, ModuleType, TracebackType
from typing import Any

from minutebook.apscheduler_fires import is_asked, next_fires, utc_now
from minutebook.beat.sent import task_of
from minutebook.json_values import altered, said
from minutebook.written import Output, add_output

VERSION = 1
IN_A_FUNCTION = (
    "if a function makes the scheduler, write a module that calls it, such as scheduler = make(), "
    "and name that"
)
# In seconds: how long a module may take to be imported after it has started its scheduler.
WAITS_S = 5.0
# Windows has no such alarm.
CAN_INTERRUPT = hasattr(signal, "setitimer")
# Not empty once the module was interrupted.
_interrupts: list[bool] = []
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
    _keep_from_starting()
    names = _names_of(module)
    try:
        return reduce(getattr, attribute.split("."), names)
    except AttributeError as error:
        raise SystemExit(f"error: {error}; {IN_A_FUNCTION}") from None


class _Interrupted(KeyboardInterrupt):
    """Ends a module that waits for its scheduler, as Ctrl-C would."""


class _Stopped(BaseException):
    """Ends a module that goes on waiting after that."""


def _names_of(module: str) -> ModuleType:
    """Return a module; of one that waits for its scheduler to end, what it had by then."""
    if CAN_INTERRUPT:
        signal.signal(signal.SIGALRM, _interrupt)
    try:
        return importlib.import_module(module)
    except (_Interrupted, _Stopped, SystemExit) as error:
        own = _frame_of(module, error.__traceback__)
        if own is None or not _is_interrupted(error):
            raise
        found = ModuleType(module)
        vars(found).update(own.f_globals)
        # Its functions are looked up there.
        sys.modules[module] = found
        return found
    finally:
        _wait(0)


def _is_interrupted(error: BaseException | None) -> bool:
    """Return whether an error is ours, or of a module that ends because of it."""
    while error is not None and not isinstance(error, (_Interrupted, _Stopped)):
        error = error.__context__
    return error is not None


def _frame_of(module: str, trace: TracebackType | None) -> FrameType | None:
    while trace is not None and trace.tb_frame.f_globals.get("__name__") != module:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame


def _wait(seconds: float) -> None:
    """Interrupt the module after so many seconds, and again after as many; 0 is for never."""
    _interrupts.clear()
    if CAN_INTERRUPT:
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)


def _interrupt(_number: int, _frame: Any) -> None:
    if _interrupts:
        raise _Stopped
    _interrupts.append(True)
    said = "note: the module went on after it had started its scheduler, and was interrupted; jobs"
    sys.stderr.write(f"{said} that it adds later are not in the file\n")
    raise _Interrupted


def _keep_from_starting() -> None:
    """Let no scheduler start: a module may start its own, which would run the jobs."""
    import pkgutil

    from apscheduler import schedulers
    from apscheduler.schedulers.base import BaseScheduler

    for one in pkgutil.iter_modules(schedulers.__path__):
        # One for a framework that is not there cannot be imported.
        with contextlib.suppress(ImportError):
            importlib.import_module(f"{schedulers.__name__}.{one.name}")
    left = [BaseScheduler]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        for name, instead in INSTEAD.items():
            if name in vars(kind):
                setattr(kind, name, instead)


def _not_started(_scheduler: Any, *_args: Any, **_kwargs: Any) -> None:
    """Stand for the start of a scheduler that is only read.

    A module that goes on waiting for it is interrupted, as by Ctrl-C.
    """
    _wait(WAITS_S)


def _not_running(_scheduler: Any, *_args: Any, **_kwargs: Any) -> None:
    """Stand for what a scheduler that is only read refuses, because it does not run."""


INSTEAD = {
    "start": _not_started,
    **dict.fromkeys(("shutdown", "pause", "resume"), _not_running),
}


def jobs_of(scheduler: Any) -> dict[str, Any]:
    """Return the jobs of a scheduler, started or not, as `minutebook import apscheduler` reads."""
    import apscheduler

    now = utc_now()
    return {
        "minutebook_apscheduler": VERSION,
        "apscheduler": apscheduler.version,
        "written_at": now.isoformat(),
        "jobs": [_job(scheduler, one, now) for one in scheduler.get_jobs()],
    }


def _job(scheduler: Any, job: Any, now: dt.datetime) -> dict[str, Any]:
    """Return a job; one that cannot be described says why, and stops no other."""
    try:
        why = _why_not_awaited(job.func) if _is_found(job) else _why_uncallable(job.func)
        state = _state(scheduler, job)
        is_anew = state["next_run_time"] is ... and _is_anew(job.trigger)
        made = job_of(state)
        made.update(task_of(job.func, job.args, job.kwargs, made["unsaid"]))
        made.update({"begins_anew": True} if is_anew else _next_of(state, now))
    except Exception as error:
        why, made = f"it cannot be read: {type(error).__name__}: {error}", {"trigger": {}}
    if why is None:
        return made
    return {"name": "", "func": "", **made, "id": str(job.id), "broken": why[:500]}


def _is_found(job: Any) -> bool:
    """Return whether another process finds the function of a job by its reference."""
    from apscheduler.util import ref_to_obj

    try:
        return bool(job.func_ref) and ref_to_obj(job.func_ref) == job.func
    except (LookupError, TypeError):
        return False


def _why_not_awaited(function: Any) -> str | None:
    """Return why calling a function does not run it; None if it does."""
    if inspect.iscoroutinefunction(function):
        return "its function is a coroutine, which only an event loop runs"
    return None


def _why_uncallable(function: Any) -> str | None:
    """Return why no other process can call a function by its name; None if one can."""
    owner = getattr(function, "__self__", None)
    if inspect.ismethod(function) and not inspect.isclass(owner):
        kind = type(owner).__name__
        return f"its function is a method of an object of {kind}, which only its own process has"
    name = getattr(function, "__qualname__", None)
    if name is None:
        return f"its function is an object of {type(function).__name__}, which has no name"
    if "<lambda>" in name:
        return "its function is a lambda, which has no name"
    if "<locals>" in name:
        return f"its function {name} is made inside another one"
    return None


def _is_anew(trigger: Any) -> bool:
    """Whether an interval was given no beginning: APScheduler counts it from this minute."""
    if type(trigger).__name__ != "IntervalTrigger":
        return False
    seconds = trigger.interval.total_seconds()
    made_now = type(trigger)(seconds=seconds, timezone=trigger.timezone)
    return bool(abs(made_now.start_date - trigger.start_date) < MINUTE)


def _state(scheduler: Any, job: Any) -> dict[str, Any]:
    """Return the state of a job; one of a scheduler that has not started lacks its defaults."""
    defaults = getattr(scheduler, "_job_defaults", {})
    names = ("misfire_grace_time", "coalesce", "max_instances")
    # A job that has not been added yet has no `next_run_time`, unless it begins paused.
    return {
        **{name: getattr(job, name, defaults.get(name)) for name in names},
        "id": job.id,
        "name": job.name,
        "func": job.func_ref or repr(job.func),
        "args": job.args,
        "kwargs": job.kwargs,
        "trigger": job.trigger,
        "next_run_time": getattr(job, "next_run_time", ...),
    }


def job_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a job, such as `job.__getstate__()` returns, as JSON holds it."""
    unsaid: list[str] = []
    grace = state["misfire_grace_time"]
    return {
        "id": str(state["id"]),
        "name": str(state["name"]),
        "func": str(state["func"]),
        "args": said("args", list(state["args"]), unsaid),
        "kwargs": said("kwargs", dict(state["kwargs"]), unsaid),
        "trigger": _trigger(state["trigger"]),
        **({} if grace is None else {"misfire_grace_time": grace}),
        "coalesce": bool(state["coalesce"]),
        "max_instances": state["max_instances"],
        "paused": state["next_run_time"] is None,
        **_next(state["next_run_time"]),
        "unsaid": unsaid,
        "altered": [*altered("args", list(state["args"])), *altered("kwargs", state["kwargs"])],
    }


def _next(at: Any) -> dict[str, Any]:
    """Return when a job runs next, unless it is paused or in no job store yet."""
    return {"next_run_time": _instant(at)} if isinstance(at, dt.datetime) else {}


def _next_of(state: Mapping[str, Any], now: dt.datetime) -> dict[str, Any]:
    """Return when a job runs next, by its own trigger; nothing if it is paused, or not known."""
    if state["next_run_time"] is None or not is_asked(state["trigger"]):
        return {}
    at = state["next_run_time"]
    grace_s = state["misfire_grace_time"]
    found = next_fires(state["trigger"], None if at is ... else at, now, grace_s)
    return {"next_at": [at.isoformat() for at in found]}


def _trigger(trigger: Any) -> dict[str, Any]:
    """Return a trigger; classes are known by their names, because their modules may be absent."""
    return _described(type(trigger).__name__, _attributes(trigger))


def _attributes(one: Any) -> dict[str, Any]:
    names = (
        *("timezone", "start_date", "end_date", "jitter", "fields", "interval", "run_date"),
        *("first", "last", "step", "option_num", "weekday", "triggers"),
        *("years", "months", "weeks", "days", "time", "_time"),
    )
    return {name: getattr(one, name, None) for name in names}


def _described(kind: str, state: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "CalendarIntervalTrigger":
        return _calendar(state)
    bounds = {
        "start_date": _instant(state.get("start_date")),
        "end_date": _instant(state.get("end_date")),
        "jitter": state.get("jitter"),
    }
    if kind == "CronTrigger":
        parts: Sequence[Any] = state["fields"]
        fields = {str(one.name): ",".join(map(_expression, one.expressions)) for one in parts}
        return {"type": "cron", "fields": fields, "timezone": _zone(state["timezone"]), **bounds}
    if kind == "IntervalTrigger":
        return {"type": "interval", "seconds": state["interval"].total_seconds(), **bounds}
    if kind == "DateTrigger":
        return {"type": "date", "run_date": _instant(state["run_date"])}
    if kind in ("OrTrigger", "AndTrigger"):
        inner = [_member(one) for one in state["triggers"]]
        return {"type": kind[:-7].lower(), "triggers": inner, "jitter": state.get("jitter")}
    return {"type": "other", "text": kind}


def _calendar(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trigger of calendar intervals: an object, or its state where it is pickled."""
    clock: Any = state.get("_time")
    days = [state.get(name) for name in ("years", "months", "weeks", "days")]
    ends = state.get("end_date")
    return {
        "type": "calendar",
        "interval": state.get("interval") or days,
        "time": state.get("time") or [clock.hour, clock.minute, clock.second],
        "timezone": _zone(state["timezone"]),
        "start_date": state["start_date"].isoformat(),
        "end_date": None if ends is None else ends.isoformat(),
        "jitter": state.get("jitter"),
    }


def _member(one: Any) -> dict[str, Any]:
    """Return a trigger inside another: an object, or its class and state where it is pickled."""
    if not isinstance(one, (tuple, list)):
        return _trigger(one)
    pair: tuple[Any, Any] = (one[0], one[1])
    return _described(str(pair[0]).rpartition(":")[2], pair[1])


def _expression(one: Any) -> str:
    kind, read = type(one).__name__, _attributes(one)
    if kind == "LastDayOfMonthExpression":
        return "last"
    if kind == "WeekdayPositionExpression":
        return "{} {}".format(POSITIONS[read["option_num"]], WEEKDAYS[read["weekday"]])
    step = "/{}".format(int(read["step"])) if read["step"] else ""
    if kind == "AllExpression":
        return "*" + step
    first, last = int(read["first"]), read["last"]
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
