"""Entries of beat's schedule as JSON holds them, each apart from the others."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from minutebook.beat.instants import Ran, follows_the_wall_clock, of_schedule
from minutebook.beat.messages import message_options
from minutebook.beat.schedules import class_name, described, meaning, zone_name
from minutebook.error_text import text_of
from minutebook.json_values import said, shown

# What beat reads of an entry.
KEYS = ("task", "schedule", "args", "kwargs", "options", "relative", "enabled", "last_run_at")
# What it sets itself.
OF_BEAT = ("name", "app", "total_run_count", "default_now")
# Methods of a task by which its class changes what is sent, or how it is run.
METHODS = ("apply_async", "apply", "__call__")

NEVER_RUN = Ran()
OTHERWISE = (
    "beat_schedule has another {} under this name, from which beat writes it anew when it starts:"
    " what is stored now moves"
)
BY_THE_WALL = (
    "this release of Celery counts intervals by the wall clock of {}, which the action does not: an"
    " interval of days keeps its time of the day in beat; a recurrence rule does so too"
)
NOT_STORED = "it is in beat_schedule alone: beat stores it when it starts"
CORRECT = "correct it in the application, and write it again"


class Broken(ValueError):
    """An entry that beat could not send, or that only the application understands."""


def entry_of(app: Any, name: Any, entry: Any, ran: Ran = NEVER_RUN) -> dict[str, Any]:
    """Return an entry; one that cannot be read is its name and, as `broken`, the reason.

    `ran` is what its scheduler has recorded of it.
    """
    return guarded(name, lambda: _entry(app, _name(name), entry, ran))


def guarded(name: Any, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the entry that `make` returns, broken if it raises any error."""
    try:
        return make()
    except Broken as error:
        return broken(name, str(error))
    except Exception as error:  # a user's router, schedule or value
        return broken(name, text_of(error))


def broken(name: Any, why: str, instead: str = CORRECT) -> dict[str, Any]:
    """Return an entry that cannot move: why not, and what to do instead."""
    return {"name": _name(name), "broken": why, "instead": instead}


def about_clocks(app: Any, schedule: Any) -> dict[str, list[str]]:
    """Return what to know of an interval that the application's Celery counts by the wall clock."""
    from celery import schedules

    with suppress(Exception):  # of a user's clock
        is_interval = type(schedule) is schedules.schedule and not schedule.relative
        if is_interval and follows_the_wall_clock(schedule, app, app.now()):
            return {"remarks": [BY_THE_WALL.format(zone_name(app.timezone))]}
    return {}


def add_remarks(entry: dict[str, Any], remarks: Sequence[str]) -> None:
    """Add what to know of an entry, if anything."""
    if remarks:
        entry["remarks"] = [*entry.get("remarks", ()), *remarks]


def definition_of(app: Any, given: Mapping[Any, Any]) -> dict[str, Any]:
    """Return what an entry runs when, to compare two of one name; nothing if it cannot be read."""
    with suppress(Exception):  # of what the importer refuses, or of a user's clock
        parts = {"task": given["task"], "args": list(given.get("args") or ())}
        schedule = meaning(app, _schedule(app, given))
        return {**parts, "kwargs": dict(given.get("kwargs") or {}), "schedule": schedule}
    return {}


def stored_beside(app: Any, given: Any, stored: Mapping[str, Any]) -> list[str]:
    """Return what to know of an entry of `beat_schedule` that its scheduler stores otherwise."""
    own = definition_of(app, given) if isinstance(given, Mapping) else {}
    others = [name for name, value in stored.items() if own and value != own[name]]
    return [OTHERWISE.format(", ".join(others))] if others else []


def _name(name: Any) -> str:
    text = name if isinstance(name, str) else shown(name)
    return "".join(one if one.isprintable() else " " for one in text)


def _entry(app: Any, name: str, entry: Any, ran: Ran) -> dict[str, Any]:
    given = _parts(entry)
    task = given.get("task")
    if not isinstance(task, str) or not task:
        raise Broken("it has no task" if task is None else f"its task {shown(task)} is not a name")
    if "schedule" not in given:
        raise Broken("it has no schedule")
    args, kwargs = _list(given.get("args")), _dict("kwargs", given.get("kwargs"))
    options = message_options(app, task, args, kwargs, _dict("options", given.get("options")))
    check_arguments(app, task, args, kwargs)
    unsaid: list[str] = []
    schedule = described(app, given["schedule"], relative=bool(given.get("relative")))
    ran = _ran(given, ran)
    return {
        "name": name,
        "task": task,
        "args": said("args", args, unsaid),
        "kwargs": said("kwargs", kwargs, unsaid),
        "options": said("options", options, unsaid),
        "schedule": schedule,
        "enabled": bool(given.get("enabled", True)),
        "unsaid": unsaid,
        "unknown": [_name(key) for key in given if key not in {*KEYS, *OF_BEAT}],
        **_known(ran),
        **_next(app, given, schedule, ran),
        **(about_clocks(app, _schedule(app, given)) if "every_s" in schedule else {}),
        **class_of(app, task),
    }


def _parts(entry: Any) -> dict[Any, Any]:
    from celery.beat import ScheduleEntry

    if isinstance(entry, Mapping):
        return dict(entry)
    if isinstance(entry, ScheduleEntry):
        # Its last run is the instant at which it was made.
        return {key: getattr(entry, key) for key in KEYS[:-1] if hasattr(entry, key)}
    raise Broken(f"{shown(entry)} is not an entry: write a dictionary with `task` and `schedule`")


def _ran(given: Mapping[Any, Any], ran: Ran) -> Ran:
    at = given.get("last_run_at")
    return ran if ran.last_run_at or not isinstance(at, dt.datetime) else Ran(aware(at), ran.due_at)


def _known(ran: Ran) -> dict[str, str]:
    known = {"last_run_at": ran.last_run_at, "due_at": ran.due_at}
    return {name: at.isoformat() for name, at in known.items() if at is not None}


def _next(
    app: Any, given: Mapping[Any, Any], schedule: Mapping[str, Any], ran: Ran
) -> dict[str, list[str]]:
    """Return when beat sends an entry next, if that is known.

    An interval counts from its last run. Beat does not send one that is disabled.
    """
    is_known = bool(ran.last_run_at or ran.due_at or "every_s" not in schedule)
    if "other" in schedule or not given.get("enabled", True) or not is_known:
        return {}
    with suppress(Exception):  # of a crontab without any date, or of a user's clock
        return next_of(of_schedule(_schedule(app, given), app, ran, app.now()))
    return {}


def _schedule(app: Any, given: Mapping[Any, Any]) -> Any:
    from celery.schedules import maybe_schedule

    return maybe_schedule(given["schedule"], bool(given.get("relative")), app=app)


def next_of(instants: Sequence[dt.datetime]) -> dict[str, list[str]]:
    """Return the next instants of an entry as JSON holds them."""
    return {"next_at": [at.isoformat() for at in instants]}


def aware(at: dt.datetime) -> dt.datetime:
    """Return an instant with its offset; Celery takes one without for UTC."""
    return at if at.tzinfo else at.replace(tzinfo=dt.timezone.utc)


def _list(value: Any) -> list[Any]:
    if value is not None and not isinstance(value, (list, tuple)):
        raise Broken(f"its args {shown(value)} are not a list")
    return list(value or ())


def _dict(part: str, value: Any) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise Broken(f"its {part} {shown(value)} are not a dictionary")
    return dict(value or {})


def check_arguments(app: Any, task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise Broken for arguments with which Celery itself refuses to send a task."""
    known = app.tasks.get(task)
    if not getattr(known, "typing", False) or not hasattr(known, "__header__"):
        return
    try:
        known.__header__(*args, **kwargs)
    except TypeError as error:
        raise Broken(f"beat cannot send it: {text_of(error)}") from None


def class_of(app: Any, task: str) -> dict[str, Any]:
    """Return the class of a task that overrides what Celery's own does, and the methods."""
    from celery import Task

    kind = type(app.tasks[task]) if task in app.tasks else Task
    overrides = [one for one in METHODS if getattr(kind, one) is not getattr(Task, one)]
    if not overrides:
        return {}
    owner = next(one for one in kind.__mro__ if any(name in vars(one) for name in overrides))
    return {"task_class": {"name": class_name(owner), "overrides": overrides}}
