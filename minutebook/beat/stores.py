"""Entries that an application's scheduler keeps in a database or in Redis.

They are read through the application's own connection. No scheduler is made, because each writes
default entries when it begins.
"""

from __future__ import annotations

import datetime as dt
import json
import shelve
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any

from minutebook.beat.entries import (
    about_clocks,
    aware,
    broken,
    check_arguments,
    class_of,
    definition_of,
    entry_of,
    guarded,
    next_of,
)
from minutebook.beat.instants import EPOCH, Ran, next_instants, set_clock
from minutebook.beat.messages import message_options
from minutebook.beat.schedules import class_name, zone_name
from minutebook.json_values import said

DJANGO = "django_celery_beat.schedulers.DatabaseScheduler"
REDBEAT = "redbeat.schedulers.RedBeatScheduler"
PLAIN = ("celery.beat.Scheduler", "celery.beat.PersistentScheduler")
OPTIONS = ("queue", "exchange", "routing_key", "priority")
SCHEDULES = ("crontab", "interval", "clocked", "solar")
GONE = "RedBeat's schedule names it, and its definition is gone from Redis: RedBeat cannot run it"


def scheduler_of(app: Any, named: str | None) -> type:
    """Return the class of beat's scheduler, by its name or that of the settings."""
    from celery.utils.imports import load_extension_class_names, symbol_by_name

    names: Any = load_extension_class_names("celery.beat_schedulers")
    found: type = symbol_by_name(named or app.conf.beat_scheduler, aliases=dict(names))
    return found


def stored_entries(app: Any, scheduler: Any) -> Iterator[dict[str, Any]]:
    """Yield the entries that a scheduler keeps itself, beside those of `beat_schedule`."""
    names = [class_name(one) for one in scheduler.__mro__]
    if DJANGO in names:
        yield from _of_django(app, scheduler)
    elif REDBEAT in names:
        yield from _of_redbeat(app, scheduler.Entry)
    if names[0] not in (DJANGO, REDBEAT, *PLAIN):
        why = f"what the scheduler {names[0]} keeps or changes itself is not read"
        yield broken("beat_scheduler", why, "write an action for each entry that is not here")


def keeps_entries(scheduler: Any) -> bool:
    """Return whether a scheduler stores the entries of `beat_schedule` when it starts."""
    return not {DJANGO, REDBEAT}.isdisjoint(class_name(one) for one in scheduler.__mro__)


def _of_django(app: Any, scheduler: Any) -> Iterator[dict[str, Any]]:
    reads = _reading(scheduler.Entry)
    for row in scheduler.Model._default_manager.order_by("pk"):
        entry = guarded(row.name, partial(_row, app, row))
        if row.enabled:
            with suppress(Exception):  # of what the importer refuses, or of a user's class
                entry.update(next_of(_next_of_row(app, reads, row)))
        yield entry


def _reading(kind: Any) -> Any:
    """Return a class of entries that writes no row: `at` is its time."""

    def default_now(entry: Any) -> dt.datetime:
        at: dt.datetime = entry.at
        is_aware = kind._default_now(entry).tzinfo is not None
        return at if is_aware else at.astimezone(dt.timezone.utc).replace(tzinfo=None)

    def refuse(_entry: Any, _row: Any) -> None:
        raise LookupError("it is disabled at its next look")

    methods = {"at": EPOCH, "_default_now": default_now}
    return type(kind.__name__, (kind,), {**methods, "_disable": refuse})


def _next_of_row(app: Any, reads: Any, row: Any) -> list[dt.datetime]:
    """Return when django-celery-beat's own entry is due next; raises an error for one never."""
    its = copy(row)
    # It counts a one-off's runs, and saves it.
    its.save, is_one_off = _refuse_to_save, bool(row.one_off)
    entry = reads(its, app=app)
    with set_clock(entry.schedule, app) as (set_to, zone):

        def is_due(last: dt.datetime, at: dt.datetime) -> tuple[bool, float | None]:
            set_to(at)
            entry.at, entry.last_run_at = at.astimezone(app.timezone), last
            is_now, wait_s = entry.is_due()
            return is_now, wait_s

        found = next_instants(is_due, zone, Ran(aware(entry.last_run_at)), app.now())
    return found[:1] if is_one_off else found


def _refuse_to_save(*_args: Any, **_kwargs: Any) -> None:
    raise LookupError("it has run, and is disabled at its next look")


def _row(app: Any, row: Any) -> dict[str, Any]:
    """Return a periodic task: its columns, those of its schedule, and its message's options."""
    options = {name: getattr(row, name) for name in OPTIONS if getattr(row, name) is not None}
    args, kwargs = _loaded(row.args, list), _loaded(row.kwargs, dict)
    check_arguments(app, row.task, args, kwargs)
    options["expires"] = row.expire_seconds
    unsaid: list[str] = []
    return {
        "name": row.name,
        "options": said("options", message_options(app, row.task, args, kwargs, options), unsaid),
        "row": said("row", _columns(row), unsaid),
        "schedules": said("schedules", dict(_schedules(row)), unsaid),
        "unsaid": unsaid,
        **class_of(app, row.task),
        **about_clocks(app, row.schedule),
        "defined": definition_of(
            app, {"task": row.task, "args": args, "kwargs": kwargs, "schedule": row.schedule}
        ),
    }


def _loaded(text: str, kind: type) -> Any:
    """Return the arguments for the router; the importer refuses those that are not JSON."""
    try:
        found = json.loads(text or "null")
    except ValueError:
        return kind()
    return found if isinstance(found, kind) else kind()


def _schedules(row: Any) -> Iterator[tuple[str, Any]]:
    for name in SCHEDULES:
        if getattr(row, f"{name}_id", None) is not None:
            yield f"{name}_id", _columns(getattr(row, name))


def _columns(row: Any) -> dict[str, Any]:
    names = [one.attname for one in row._meta.concrete_fields]
    return {name: _column(name, getattr(row, name)) for name in names}


def _column(name: str, value: Any) -> Any:
    if isinstance(value, dt.datetime):
        # Beat itself writes it, always in UTC.
        return (aware(value) if name == "last_run_at" else _aware(value)).isoformat()
    if isinstance(value, dt.tzinfo):
        return zone_name(value)
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _aware(at: dt.datetime) -> dt.datetime:
    """Return an instant with its offset: without USE_TZ Django keeps times of its own zone."""
    from django.utils.timezone import is_naive, make_aware

    return make_aware(at) if is_naive(at) else at


def _of_redbeat(app: Any, entry: Any) -> Iterator[dict[str, Any]]:
    from redbeat.schedulers import ensure_conf, get_redis

    prefix, client = ensure_conf(app).key_prefix, get_redis(app)
    pattern = "".join(f"\\{one}" if one in "*?[]\\" else one for one in prefix) + "*"
    keys = (one.decode() if isinstance(one, bytes) else one for one in client.scan_iter(pattern))
    for key in sorted(keys):
        # Keys with a second colon are RedBeat's own: its schedule, its statics, its lock.
        if not key.startswith(f"{prefix}:") and client.type(key) in ("hash", b"hash"):
            name = key[len(prefix) :]
            yield guarded(name, partial(_of_key, app, entry, key, name))
    for member in client.zrange(ensure_conf(app).schedule_key, 0, -1):
        key = member.decode() if isinstance(member, bytes) else member
        name = key[len(prefix) :]
        # Beat stores what stands in `beat_schedule` anew.
        if not client.exists(key) and name not in (app.conf.beat_schedule or {}):
            yield broken(name, GONE, "write an action for it, if it still has to run")


def _of_key(app: Any, entry: Any, key: str, name: str) -> dict[str, Any]:
    from redbeat.schedulers import ensure_conf, get_redis

    definition = entry.load_definition(key, app=app)
    score = get_redis(app).zscore(ensure_conf(app).schedule_key, key)
    # RedBeat runs no key with a score below 0.
    is_planned = score is not None and score >= 0
    due_at = dt.datetime.fromtimestamp(score, dt.timezone.utc) if is_planned else None
    last_run_at = entry.load_meta(key, app=app)["last_run_at"] if is_planned else None
    found = entry_of(app, definition.get("name", name), definition, Ran(last_run_at, due_at))
    found["defined"] = definition_of(app, definition)
    return found if is_planned else {**found, "next_at": []}


def last_runs(path: str) -> dict[str, dt.datetime]:
    """Return when beat last ran its entries, by their names, from its schedule file."""
    # Beat itself unpickles it, in the same environment.
    with shelve.open(path, flag="r") as stored:  # noqa: S301
        return {name: aware(one.last_run_at) for name, one in stored["entries"].items()}
