"""Entries of a scheduler as JSON holds them, each made by the scheduler's own class `Entry`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from minutebook.beat.instants import Ran, counts_by_the_wall, of_entry
from minutebook.beat.messages import Unsendable, message_of_entry
from minutebook.beat.schedules import class_name, described, is_schedule, zone_name
from minutebook.error_text import text_of
from minutebook.json_values import said, shown

# Methods of a task by which its class changes what is sent, or how it is run.
OF_A_TASK = ("apply_async", "apply", "__call__")
# Methods by which a class of entries or a scheduler decides what is sent when.
OF_AN_ENTRY = ("is_due", "__next__", "next", "_next_instance")
OF_A_SCHEDULER = (
    *("tick", "is_due", "maybe_due", "reserve", "apply_entry", "apply_async", "send_task"),
    *("populate_heap", "all_as_schedule", "enabled_models", "enabled_models_qs"),
)
# Whose classes behave as is known here.
KNOWN = ("celery", "django_celery_beat", "redbeat")
PARTS = ("task", "args", "kwargs", "schedule")

NEVER_RUN = Ran()
OTHERWISE = (
    "beat_schedule has another {} under this name, from which beat writes it anew when it starts:"
    " what is stored now moves"
)
BY_THE_WALL = (
    "this release of Celery counts intervals by the wall clock of {}, which the action does not: an"
    " interval of days keeps its time of the day in beat; a recurrence rule does so too"
)
NOT_CALLED = "{} overrides {}, which Minutebook does not call"
NOT_STORED = "it is in beat_schedule alone: beat stores it when it starts"
SENDS = (
    "its class {} overrides apply_async, which Minutebook does not call: if that keeps its runs"
    ' apart, write "policy": {{"overlap": "skip"}}'
)
RUNS = "its class {} overrides {}: a worker that follows claims the run within it"
EAGER = (
    "task_always_eager lets beat run the task in its own process; Minutebook sends it to a worker"
)
SIGNAL = "the application changes messages in before_task_publish, which Minutebook does not call"
PROTOCOL = "its message has protocol {}, that of the action protocol 2"
CORRECT = "correct it in the application, and write it again"


class Broken(ValueError):
    """An entry that beat could not send, or that only the application understands."""


def entry_of(app: Any, kind: Any, name: Any, given: Any, ran: Ran = NEVER_RUN) -> dict[str, Any]:
    """Return an entry of `beat_schedule`, which the class `kind` makes of what is given.

    One that cannot be read is its name and, as `broken`, the reason. `ran` is what its scheduler
    has recorded of it.
    """

    def make() -> dict[str, Any]:
        entry = made_of(app, kind, name, given)
        # Without a last run of its own, an entry's is the instant at which it was made.
        at = given.get("last_run_at") if isinstance(given, Mapping) else None
        return said_of(app, entry, Ran(aware(at)) if at and not ran.last_run_at else ran)

    return guarded(name, make)


def guarded(name: Any, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the entry that `make` returns, broken if it raises any error."""
    try:
        return make()
    except Unsendable as error:
        return broken(name, str(error), error.instead)
    except Broken as error:
        return broken(name, str(error))
    except Exception as error:  # a user's class, schedule or value
        return broken(name, text_of(error))


def broken(name: Any, why: str, instead: str = CORRECT) -> dict[str, Any]:
    """Return an entry that cannot move: why not, and what to do instead."""
    return {"name": _name(name), "broken": why, "instead": instead}


def _name(name: Any) -> str:
    text = name if isinstance(name, str) else shown(name)
    return "".join(one if one.isprintable() else " " for one in text)


def made_of(app: Any, kind: Any, name: Any, given: Any) -> Any:
    """Return the entry that a class makes, as beat does; raises Broken and what it raises."""
    from celery.beat import ScheduleEntry

    if not isinstance(given, (Mapping, ScheduleEntry)):
        why = f"{shown(given)} is not an entry: write a dictionary with `task` and `schedule`"
        raise Broken(why)
    parts: dict[str, Any] = dict(given)  # type: ignore[arg-type]
    if "schedule" not in parts:
        raise Broken("it has no schedule")
    if not is_schedule(parts["schedule"]):
        raise Broken(f"its schedule {shown(parts['schedule'])} is no schedule of Celery")
    for part, wanted, noun in (
        ("args", (list, tuple), "a list"),
        ("kwargs", Mapping, "a dictionary"),
        ("options", Mapping, "a dictionary"),
    ):
        value = parts.get(part)
        if value is not None and not isinstance(value, wanted):
            raise Broken(f"its {part} {shown(value)} are not {noun}")
    try:
        return kind(**{**parts, "name": name, "app": app})
    except Exception as error:  # a user's class, or a key that is unknown to beat
        raise Broken(f"beat cannot make its entry: {text_of(error)}") from None


def said_of(app: Any, entry: Any, ran: Ran) -> dict[str, Any]:
    """Return an entry as JSON holds it, with the message that Celery makes for it."""
    if not isinstance(entry.task, str) or not entry.task:
        wrong = (
            "it has no task" if entry.task is None else f"its task {shown(entry.task)} is no name"
        )
        raise Broken(wrong)
    made = message_of_entry(app, entry)
    schedule = described(entry.schedule)
    is_enabled = bool(getattr(entry, "enabled", True))
    unsaid: list[str] = []
    return {
        "name": _name(entry.name),
        "task": made["task"],
        **{part: said(part, made[part], unsaid) for part in ("args", "kwargs", "options")},
        "schedule": schedule,
        "enabled": is_enabled,
        "unsaid": unsaid,
        **_known(ran),
        **_next(app, entry, ran, is_asked=is_enabled and "other" not in schedule),
        "remarks": [*_remarks(app, entry)],
    }


def _known(ran: Ran) -> dict[str, str]:
    known = {"last_run_at": ran.last_run_at, "due_at": ran.due_at}
    return {name: at.isoformat() for name, at in known.items() if at is not None}


def _next(app: Any, entry: Any, ran: Ran, *, is_asked: bool) -> dict[str, list[str]]:
    """Return when beat sends an entry next, if that is known.

    An interval counts from its last run. Beat does not send one that is disabled.
    """
    is_known = ran.last_run_at or ran.due_at or not hasattr(entry.schedule, "run_every")
    if not is_asked or not is_known:
        return {}
    with suppress(Exception):  # of a crontab without any date, or of a user's clock
        return {"next_at": [at.isoformat() for at in of_entry(entry, app, ran, app.now())]}
    return {}


def _remarks(app: Any, entry: Any) -> Iterator[str]:
    """Yield what the application does with an entry, and Minutebook does not."""
    from celery import schedules, signals

    schedule = entry.schedule
    is_interval = type(schedule) is schedules.schedule and not schedule.relative
    if is_interval and counts_by_the_wall(app):
        yield BY_THE_WALL.format(zone_name(app.timezone))
    yield from overrides(type(entry), OF_AN_ENTRY)
    yield from _of_class(app, entry.task)
    if app.conf.task_always_eager and entry.task in app.tasks:
        yield EAGER
    if signals.before_task_publish.receivers:
        yield SIGNAL
    if app.conf.task_protocol != 2:
        yield PROTOCOL.format(app.conf.task_protocol)


def overrides(kind: type, methods: Sequence[str]) -> Iterator[str]:
    """Yield what a class of the application overrides of these methods, if it does."""
    own = [name for name in methods if (one := _owner(kind, name)) and not is_known(one)]
    if own:
        yield NOT_CALLED.format(class_name(kind), " and ".join(own))


def is_known(kind: type) -> bool:
    """Whether a class is one of Celery's, django-celery-beat's or RedBeat's own."""
    return kind.__module__.partition(".")[0] in KNOWN


def _owner(kind: type, name: str) -> type | None:
    return next((one for one in kind.__mro__ if name in vars(one)), None)


def stored_beside(app: Any, name: str, given: Any, stored: Any) -> list[str]:
    """Return what to know of an entry of `beat_schedule` that its scheduler stores otherwise."""
    from celery.beat import ScheduleEntry

    with suppress(Exception):  # of an entry that beat would not take
        own = made_of(app, ScheduleEntry, name, given)
        pairs = {part: (getattr(own, part), getattr(stored, part)) for part in PARTS}
        pairs["args"] = (list(own.args or ()), list(stored.args or ()))
        others = [part for part, (one, other) in pairs.items() if one != other]
        return [OTHERWISE.format(", ".join(others))] if others else []
    return []


def add_remarks(entry: dict[str, Any], remarks: Sequence[str]) -> None:
    """Add what to know of an entry that can move, if anything."""
    if remarks and "broken" not in entry:
        entry["remarks"] = [*entry.get("remarks", ()), *remarks]


def aware(at: dt.datetime) -> dt.datetime:
    """Return an instant with its offset; Celery takes one without for UTC."""
    return at if at.tzinfo else at.replace(tzinfo=dt.timezone.utc)


def _of_class(app: Any, task: str) -> Iterator[str]:
    """Yield what the class of a task changes in how Celery sends or runs it."""
    kind = type(app.tasks[task]) if task in app.tasks else object
    own = [name for name in OF_A_TASK if (one := _owner(kind, name)) and not is_known(one)]
    if own:
        owner = next(one for one in kind.__mro__ if any(name in vars(one) for name in own))
        text = SENDS if "apply_async" in own else RUNS
        yield text.format(class_name(owner), " and ".join(own))
