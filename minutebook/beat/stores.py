"""Entries that an application's scheduler keeps itself: in a database, in Redis, or in its code.

They are read through the application's own connection. The schedulers of django-celery-beat and
RedBeat are not made, because each writes default entries when it begins.
"""

from __future__ import annotations

import datetime as dt
import os
import shelve
from collections.abc import Iterator
from copy import copy
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from minutebook.beat.entries import (
    Broken,
    add_remarks,
    aware,
    broken,
    guarded,
    overrides,
    said_of,
)
from minutebook.beat.instants import Ran
from minutebook.beat.schedules import class_name

DJANGO = "django_celery_beat.schedulers.DatabaseScheduler"
REDBEAT = "redbeat.schedulers.RedBeatScheduler"
# What a scheduler of the application overrides if it has entries of its own.
READS = ("schedule", "get_schedule")
BUILDS = ("setup_schedule", "merge_inplace", "update_from_dict", "install_default_entries")
GONE = "RedBeat's schedule names it, and its definition is gone from Redis: RedBeat cannot run it"
# How Redis names a hash.
HASHES = ("hash", b"hash")
EXPIRES = "its messages expire at its end; one of the action that waits then is run"
DISABLES = "django-celery-beat disables it: its schedule is gone, or its arguments are not JSON"


def scheduler_of(app: Any, named: str | None) -> type:
    """Return the class of beat's scheduler, by its name or that of the settings."""
    from celery.utils.imports import load_extension_class_names, symbol_by_name

    names: Any = load_extension_class_names("celery.beat_schedulers")
    found: type = symbol_by_name(named or app.conf.beat_scheduler, aliases=dict(names))
    return found


def is_of(scheduler: Any, name: str) -> bool:
    """Whether a scheduler is of that class, or of one derived from it."""
    return name in map(class_name, scheduler.__mro__)


def keeps_entries(scheduler: Any) -> bool:
    """Whether a scheduler stores the entries of `beat_schedule` when it starts."""
    return is_of(scheduler, DJANGO) or is_of(scheduler, REDBEAT)


def has_own(scheduler: Any) -> bool:
    """Whether a scheduler of the application itself decides which entries there are."""
    return not keeps_entries(scheduler) and any(overrides(scheduler, (*READS, *BUILDS)))


def stored_entries(app: Any, scheduler: Any) -> Iterator[dict[str, Any]]:
    """Yield the entries that a scheduler keeps itself, beside those of `beat_schedule`.

    Each has what its class made under the key `entry`.
    """
    if is_of(scheduler, DJANGO):
        yield from _of_django(app, scheduler)
    elif is_of(scheduler, REDBEAT):
        yield from _of_redbeat(app, scheduler.Entry)
    elif has_own(scheduler):
        yield from _of_its_own(app, scheduler)


def _of_its_own(app: Any, scheduler: Any) -> Iterator[dict[str, Any]]:
    """Yield the entries of a scheduler that is made as beat makes it, and does not tick."""
    with TemporaryDirectory() as folder:
        made = scheduler(app=app, lazy=True, schedule_filename=os.path.join(folder, "schedule"))
        if any(overrides(scheduler, BUILDS)) and not any(overrides(scheduler, READS)):
            made.setup_schedule()
        for name, entry in dict(made.schedule).items():
            yield guarded(name, partial(said_of, app, entry, Ran()))


def _of_django(app: Any, scheduler: Any) -> Iterator[dict[str, Any]]:
    kind = _reading(scheduler.Entry, app.now())
    for row in scheduler.Model._default_manager.order_by("pk"):
        its = copy(row)
        # An entry counts a one-off's runs, and saves it.
        its.save = _refuse_to_save
        yield guarded(row.name, partial(_row, app, kind, its))


def _reading(kind: Any, now: dt.datetime) -> Any:
    """Return a class of entries that writes no row: `at` is its time."""

    def default_now(entry: Any) -> dt.datetime:
        at: dt.datetime = entry.at
        is_aware = kind._default_now(entry).tzinfo is not None
        return at if is_aware else at.astimezone(dt.timezone.utc).replace(tzinfo=None)

    def refuse(_entry: Any, _row: Any) -> None:
        raise Broken(DISABLES)

    methods = {"at": now, "_default_now": default_now, "_disable": refuse}
    return type(kind.__name__, (kind,), {**methods, "__module__": kind.__module__})


def _refuse_to_save(*_args: Any, **_kwargs: Any) -> None:
    raise LookupError("it has run, and is disabled at its next look")


def _row(app: Any, kind: Any, row: Any) -> dict[str, Any]:
    """Return a periodic task, by the entry that django-celery-beat makes of it."""
    entry = kind(row, app=app)
    entry.enabled = bool(row.enabled)
    is_once = bool(row.one_off) or row.clocked_id is not None
    # Its look at the clock counts the run anew.
    has_run = is_once and bool(row.total_run_count)
    # A row's end is the instant at which its messages expire, too.
    is_bound = row.expires is not None and entry.options.get("expires") == row.expires
    if is_bound:
        del entry.options["expires"]
    # Until 2.7 a row that never ran counts from when beat starts, which is not known.
    last_run_at = aware(entry.last_run_at)
    found = said_of(app, entry, Ran(None if last_run_at == kind.at else last_run_at))
    add_remarks(found, [EXPIRES] if is_bound else [])
    bounds = {"starts_at": row.start_time, "ends_at": row.expires}
    return {
        **found,
        "entry": entry,
        **({"next_at": found["next_at"][:1]} if is_once and "next_at" in found else {}),
        "description": row.description or "",
        "once": is_once,
        "has_run": has_run,
        **{key: _aware(at).isoformat() for key, at in bounds.items() if at is not None},
    }


def _aware(at: dt.datetime) -> dt.datetime:
    """Return an instant with its offset: without USE_TZ Django keeps times of its own zone."""
    from django.utils.timezone import is_naive, make_aware

    return make_aware(at) if is_naive(at) else at


def _of_redbeat(app: Any, kind: Any) -> Iterator[dict[str, Any]]:
    from redbeat.schedulers import ensure_conf, get_redis

    conf, client = ensure_conf(app), get_redis(app)
    prefix = conf.key_prefix
    pattern = "".join(f"\\{one}" if one in "*?[]\\" else one for one in prefix) + "*"
    planned = {
        _text(key): score for key, score in client.zrange(conf.schedule_key, 0, -1, withscores=True)
    }
    for key in sorted({*map(_text, client.scan_iter(pattern)), *planned}):
        name = key[len(prefix) :]
        # Keys with a second colon are RedBeat's own: its schedule, its statics, its lock.
        if key.startswith(f"{prefix}:") or (key not in planned and client.type(key) not in HASHES):
            continue
        if client.hexists(key, "definition"):
            yield guarded(name, partial(_of_key, app, kind, key, planned.get(key)))
        # Beat stores what stands in `beat_schedule` anew.
        elif name not in (app.conf.beat_schedule or {}):
            yield broken(name, GONE, "write an action for it, if it still has to run")


def _text(key: Any) -> str:
    return key.decode() if isinstance(key, bytes) else str(key)


def _of_key(app: Any, kind: Any, key: str, score: float | None) -> dict[str, Any]:
    entry = kind.from_key(key, app=app)
    # RedBeat runs no key with a score below 0.
    if score is None or score < 0:
        return {**said_of(app, entry, Ran()), "entry": entry, "next_at": []}
    due_at = dt.datetime.fromtimestamp(score, dt.timezone.utc)
    return {**said_of(app, entry, Ran(entry.last_run_at, due_at)), "entry": entry}


def last_runs(path: str) -> dict[str, dt.datetime]:
    """Return when beat last ran its entries, by their names, from its schedule file."""
    # Beat itself unpickles it, in the same environment.
    with shelve.open(path, flag="r") as stored:  # noqa: S301
        return {name: aware(one.last_run_at) for name, one in stored["entries"].items()}
