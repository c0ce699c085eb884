"""Periodic tasks of django-celery-beat, as `python -m minutebook export` writes their rows."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field, JsonValue

from cron import CronSchedule
from interop.beat import (
    NOTHING_TO_DO,
    ROUNDED,
    Interval,
    Items,
    TaskClass,
    Text,
    continued,
    every,
    instant_or_none,
    known_of,
    once,
    remarks_of,
    solar_rule,
)
from interop.celery_rules import Crontab
from interop.celery_work import POLICY, work_of
from interop.entries import CORRECT, CannotMove, Entry, check_said
from models.document import Document
from models.values import format_instant
from models.values.delays import rounded_up

LONGEST_JSON = 1_000_000
PERIODS = {
    "days": timedelta(days=1),
    "hours": timedelta(hours=1),
    "minutes": timedelta(minutes=1),
    "seconds": timedelta(seconds=1),
    "microseconds": timedelta(microseconds=1),
}
# Columns that refer to a schedule.
SCHEDULES = ("crontab_id", "interval_id", "clocked_id", "solar_id")

Columns = Mapping[str, Any]


class Row(Document):
    """A periodic task: its columns, and its message's options as Celery's router has them."""

    name: Text
    row: dict[str, JsonValue]
    schedules: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    options: dict[str, JsonValue] = Field(default_factory=dict)
    unsaid: Items = ()
    next_at: Items | None = None
    remarks: Items = ()
    task_class: TaskClass | None = None


@dataclass(frozen=True, slots=True)
class _Read:
    """A row with its schedule, the instant of the import, and that at which it was written."""

    row: Columns
    kind: str
    schedule: Columns
    now: datetime
    written_at: datetime


def entry_of(one: Row, where: str, owner: str, now: datetime, written_at: datetime) -> Entry:
    """Return the entry of a row; raises CannotMove."""
    check_said(one.unsaid, "task")
    row: Columns = one.row
    # As django-celery-beat does, for the results of django-celery-results.
    headers = {**_json(row, "headers", dict), "periodic_task_name": row["name"]}
    args, kwargs = _json(row, "args", list), _json(row, "kwargs", dict)
    options = {**one.options, "headers": headers}
    operations, remarks = work_of(str(row["task"]), args, kwargs, options)
    when, more = _when(_Read(row, *_schedule(one), now, written_at))
    return Entry(
        name=str(row["name"]),
        where=where,
        description=str(row.get("description") or "").strip(),
        owner=owner,
        active=bool(row["enabled"]),
        operations=operations,
        when=when,
        policy={**POLICY, **_bounds(row, now)},
        remarks=(*remarks, *more, *map(str, one.remarks), *remarks_of(one.task_class)),
        known=known_of(one.next_at, written_at),
    )


def _json(row: Columns, column: str, kind: type) -> Any:
    text = row.get(column) or ("[]" if kind is list else "{}")
    try:
        if len(text) > LONGEST_JSON:
            raise ValueError(f"has over {LONGEST_JSON} characters")
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = f"its {column} {text[:60]!r} are not JSON: {error}"
        raise CannotMove(why, "correct them; django-celery-beat disables such a task") from None
    if not isinstance(found, kind):
        wanted = "list" if kind is list else "object"
        why = f"its {column} {text[:60]!r} must be a JSON {wanted}"
        raise CannotMove(why, f"write a JSON {wanted}")
    return found


def _bounds(row: Columns, now: datetime) -> dict[str, str]:
    """Return the policy's first and last instants; raises CannotMove for what has expired."""
    starts_at, ends_at = _instant(row.get("start_time")), _instant(row.get("expires"))
    if ends_at is not None and ends_at <= now:
        raise CannotMove(f"it expired at {format_instant(ends_at)}", NOTHING_TO_DO)
    found = {"starts_at": starts_at, "ends_at": ends_at}
    return {key: format_instant(at) for key, at in found.items() if at is not None}


def _instant(value: object) -> datetime | None:
    """Return an instant of a column in whole seconds, rounded up; raises CannotMove."""
    if value is None:
        return None
    at = instant_or_none(value)
    if at is None:
        raise CannotMove(f"{str(value)[:60]!r} is not an instant", CORRECT)
    return rounded_up(at)


def _schedule(one: Row) -> tuple[str, Columns]:
    columns = [column for column in SCHEDULES if one.row.get(column) is not None]
    if len(columns) != 1:
        named = ", ".join(column.removesuffix("_id") for column in columns) or "none"
        raise CannotMove(f"it has {len(columns)} schedules ({named})", "give it one")
    (column,) = columns
    if column not in one.schedules:
        why = f"its {column} {one.row[column]} is in no table"
        raise CannotMove(why, "give it a schedule")
    return column.removesuffix("_id"), one.schedules[column]


def _when(read: _Read) -> Interval:
    """Return the rule of a task, and what differs."""
    row = read.row
    one_off = bool(row.get("one_off")) or read.kind == "clocked"
    if one_off and not row["enabled"]:
        raise CannotMove("it runs once and is disabled: it has run, or must not", NOTHING_TO_DO)
    if one_off and row.get("total_run_count"):
        raise CannotMove("it runs once, and has run", NOTHING_TO_DO)
    if read.kind == "clocked":
        return once(_instant(read.schedule["clocked_time"]), read.now), ()
    kinds = {"crontab": _crontab, "interval": _interval, "solar": _solar}
    return kinds[read.kind](read, one_off=one_off)


def _interval(read: _Read, *, one_off: bool) -> Interval:
    row, schedule = read.row, read.schedule
    starts_at = _instant(row.get("start_time"))
    if one_off and starts_at is None:
        why = "it runs once, one interval after beat has started"
        raise CannotMove(why, "give it a clocked schedule")
    if one_off:
        return once(starts_at, read.now), ()
    period = PERIODS.get(str(schedule["period"]))
    if period is None:
        why = f"its period {schedule['period']!r} is unknown"
        raise CannotMove(why, f"use one of {', '.join(PERIODS)}")
    rule = every(schedule["every"] * period.total_seconds())
    due_at = _due_at(row, schedule["every"] * period, starts_at)
    found, remarks = continued(rule, due_at, read.written_at)
    # A task that is disabled is due whenever it is enabled again.
    return found, remarks if row["enabled"] else ()


def _due_at(row: Columns, every: timedelta, starts_at: datetime | None) -> datetime | None:
    """Return when django-celery-beat runs an interval next; None if the row does not say."""
    last_run_at = instant_or_none(row.get("last_run_at"))
    if last_run_at is None and starts_at is not None:
        return starts_at
    # Before its first run it counts from when it was changed.
    counted_from = last_run_at or instant_or_none(row.get("date_changed"))
    if counted_from is None:
        return None
    return max(counted_from + every, starts_at or counted_from)


def _solar(read: _Read, *, one_off: bool) -> Interval:
    if one_off:
        raise CannotMove("it runs once, at the sun's next event", "give it a clocked schedule")
    columns = ("event", "latitude", "longitude")
    return solar_rule(*map(read.schedule.get, columns)), (ROUNDED,)


def _crontab(read: _Read, *, one_off: bool) -> Interval:
    zone = str(read.schedule.get("timezone") or "UTC")
    crontab = Crontab.read(read.schedule, zone)
    when, now = crontab.when, read.now
    starts_at = _instant(read.row.get("start_time"))
    if one_off:
        after = max(now, starts_at or now)
        return once(CronSchedule(crontab.rule, zone).next(after), now), ()
    if starts_at is not None and starts_at > now and read.row.get("last_run_at") is None:
        return when, (
            "django-celery-beat also runs it once at its start_time, the action does not",
        )
    return when, ()
