"""Periodic tasks of django-celery-beat, read from its tables without Django."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from cron import CronSchedule
from minutebook.beat.instants import Ran
from minutebook.error_text import text_of
from models.values import format_instant
from models.values.delays import rounded_up
from moving.beat import NOTHING_TO_DO, ROUNDED, every, once, solar_rule
from moving.celery_fires import CrontabFires, known_crontab, known_interval
from moving.celery_rules import Crontab
from moving.celery_work import POLICY, work_of
from moving.django_beat.tables import SCHEDULES, TASKS, Tables
from moving.django_beat.times import Row, has_no_zone
from moving.entries import CannotMove, Entry, Known, Refused, entry_or_refused
from moving.phases import Interval, continued, instant_or_none

LONGEST_JSON = 1_000_000
OWNER = "import:django-celery-beat"
PERIODS = {
    "days": timedelta(days=1),
    "hours": timedelta(hours=1),
    "minutes": timedelta(minutes=1),
    "seconds": timedelta(seconds=1),
    "microseconds": timedelta(microseconds=1),
}


def entries_of(
    tables: Tables, now: datetime, default_queue: str | None = None
) -> Iterator[Entry | Refused]:
    """Yield the periodic tasks; a task without a queue goes to `default_queue`."""
    for row in tables.tasks:
        name, where = str(row.get("name")), f"{TASKS} {row['id']}"
        options = _options(row, default_queue)
        yield row_or_refused(name, where, partial(entry_of, row, tables, now, options))


def row_or_refused(name: str, where: str, make: Callable[[], Entry]) -> Entry | Refused:
    """Return the entry of a row, refused also for what only SQLite takes: any value anywhere."""
    try:
        return entry_or_refused(name, where, make)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        why = f"its rows hold what django-celery-beat does not write: {text_of(error)}"
        return Refused(name, where, why, "correct them, or write an action for it")


def entry_of(row: Row, tables: Tables, now: datetime, given: Mapping[str, Any]) -> Entry:
    """Return the entry of a row, whose message has the options `given`; raises CannotMove."""
    # As django-celery-beat does, for the results of django-celery-results.
    headers = {**_json(row, "headers", dict), "periodic_task_name": row["name"]}
    options = {**given, "headers": headers}
    args, kwargs = _json(row, "args", list), _json(row, "kwargs", dict)
    operations, remarks = work_of(str(row["task"]), args, kwargs, options)
    when, fires, more = _when(row, tables, now)
    return Entry(
        name=str(row["name"]),
        where=f"{TASKS} {row['id']}",
        description=str(row.get("description") or "").strip(),
        owner=OWNER,
        active=bool(row["enabled"]),
        operations=operations,
        when=when,
        policy={**POLICY, **_bounds(row, now)},
        remarks=(*remarks, *more, *_zone_unknown(row, tables)),
        fires=fires,
        known=_next(row, tables, now),
    )


def _zone_unknown(row: Row, tables: Tables) -> Iterator[str]:
    """Yield what differs if the times of a row are in another zone than UTC."""
    column, schedule = _schedule(row, tables)
    is_counted = column == "interval_id" and row.get("last_run_at") is None
    names = ("start_time", "expires", *(("date_changed",) if is_counted else ()))
    if not tables.is_utc and (has_no_zone(row, names) or has_no_zone(schedule, ["clocked_time"])):
        yield "its times are read as UTC: if Django runs with USE_TZ = False, name its zone, --zone"


def _next(row: Row, tables: Tables, now: datetime) -> Known | None:
    """Return when beat runs a task next, as Celery's own engine finds; None if it is not asked."""
    counted_from = _known(row.get("last_run_at")) or _known(row.get("date_changed"))
    is_plain = row["enabled"] and not row.get("one_off") and row.get("start_time") is None
    if not is_plain or counted_from is None:
        return None
    column, schedule = _schedule(row, tables)
    ran, as_of = Ran(counted_from), max(tables.read_at or now, counted_from)
    if column == "crontab_id":
        return known_crontab(_crontab_of(schedule), ran, as_of)
    if column == "interval_id":
        every = schedule["every"] * PERIODS[str(schedule["period"])]
        return known_interval(every, "UTC", ran, as_of)
    return None


def _options(row: Row, default_queue: str | None) -> dict[str, Any]:
    names = ("queue", "exchange", "routing_key", "priority")
    options = {name: row[name] for name in names if row.get(name) is not None}
    if not options.get("queue") and default_queue:
        options["queue"] = default_queue
    if row.get("expire_seconds") is not None:
        options["expires"] = row["expire_seconds"]
    return options


def _json(row: Row, column: str, kind: type) -> Any:
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


def _bounds(row: Row, now: datetime) -> dict[str, str]:
    """Return the policy's first and last instants; raises CannotMove for what has expired."""
    starts_at, ends_at = _instant(row.get("start_time")), _instant(row.get("expires"))
    if ends_at is not None and ends_at <= now:
        raise CannotMove(f"it expired at {format_instant(ends_at)}", NOTHING_TO_DO)
    found = {"starts_at": starts_at, "ends_at": ends_at}
    return {key: format_instant(at) for key, at in found.items() if at is not None}


def _instant(value: object) -> datetime | None:
    """Return an instant of a column in whole seconds, rounded up; raises CannotMove.

    An instant without an offset is UTC in SQLite's texts. PostgreSQL's are in a zone of Django's.
    """
    if value is None:
        return None
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise CannotMove(f"{value!r} is not an instant", "correct it") from None
    if isinstance(value, datetime) and value.tzinfo is None:
        why = f"its instant {value} has no zone: Django runs with USE_TZ = False"
        raise CannotMove(why, "name Django's TIME_ZONE with --zone")
    return rounded_up(at.replace(tzinfo=UTC) if at.tzinfo is None else at)


When = tuple[Any, CrontabFires | None, tuple[str, ...]]


def _when(row: Row, tables: Tables, now: datetime) -> When:
    """Return the rule of a task, its instants in Celery, and what else differs."""
    column, schedule = _schedule(row, tables)
    one_off = bool(row.get("one_off")) or column == "clocked_id"
    if one_off and not row["enabled"]:
        raise CannotMove("it runs once and is disabled: it has run, or must not", NOTHING_TO_DO)
    if one_off and row.get("total_run_count"):
        raise CannotMove("it runs once, and has run", NOTHING_TO_DO)
    if column == "clocked_id":
        return once(_instant(schedule["clocked_time"]), now), None, ()
    if column == "solar_id":
        return _solar(schedule, one_off=one_off)
    if column == "interval_id":
        rule, remarks = _interval(row, schedule, now, tables.read_at or now, one_off=one_off)
        return rule, None, remarks
    return _crontab(row, schedule, one_off=one_off, now=now)


def _schedule(row: Row, tables: Tables) -> tuple[str, Row]:
    columns = [column for column in SCHEDULES if row.get(column) is not None]
    if len(columns) != 1:
        named = ", ".join(column.removesuffix("_id") for column in columns) or "none"
        raise CannotMove(f"it has {len(columns)} schedules ({named})", "give it one")
    (column,) = columns
    schedule = tables.schedules.get(column, {}).get(row[column])
    if schedule is None:
        raise CannotMove(f"its {column} {row[column]} is in no table", "give it a schedule")
    return column, schedule


def _interval(
    row: Row, schedule: Row, now: datetime, read_at: datetime, *, one_off: bool
) -> Interval:
    starts_at = _instant(row.get("start_time"))
    if one_off and starts_at is None:
        why = "it runs once, one interval after beat has started"
        raise CannotMove(why, "give it a clocked schedule")
    if one_off:
        return once(starts_at, now), ()
    period = PERIODS.get(str(schedule["period"]))
    if period is None:
        why = f"its period {schedule['period']!r} is unknown"
        raise CannotMove(why, f"use one of {', '.join(PERIODS)}")
    rule = every(schedule["every"] * period.total_seconds())
    found, remarks = continued(rule, _due_at(row, schedule["every"] * period, starts_at), read_at)
    # A task that is disabled is due whenever it is enabled again.
    return found, remarks if row["enabled"] else ()


def _due_at(row: Row, every: timedelta, starts_at: datetime | None) -> datetime | None:
    """Return when django-celery-beat runs an interval next; None if the row does not say."""
    last_run_at = _known(row.get("last_run_at"))
    if last_run_at is None and starts_at is not None:
        return starts_at
    # Before its first run it counts from when it was changed.
    counted_from = last_run_at or _known(row.get("date_changed"))
    if counted_from is None:
        return None
    return max(counted_from + every, starts_at or counted_from)


def _known(value: object) -> datetime | None:
    """Return an instant of a column; None for one in an unknown zone."""
    is_in_a_zone_of_django = isinstance(value, datetime) and value.tzinfo is None
    return None if is_in_a_zone_of_django else instant_or_none(value)


def _solar(schedule: Row, *, one_off: bool) -> When:
    if one_off:
        raise CannotMove("it runs once, at the sun's next event", "give it a clocked schedule")
    rule = solar_rule(*(schedule.get(name) for name in ("event", "latitude", "longitude")))
    return rule, None, (ROUNDED,)


def _crontab(row: Row, schedule: Row, *, one_off: bool, now: datetime) -> When:
    crontab = _crontab_of(schedule)
    when = crontab.when
    starts_at = _instant(row.get("start_time"))
    if one_off:
        return once(_first(crontab, max(now, starts_at or now)), now), None, ()
    remarks: tuple[str, ...] = ()
    if starts_at is not None and starts_at > now and row.get("last_run_at") is None:
        remarks = ("django-celery-beat also runs it once at its start_time, the action does not",)
    return when, CrontabFires(crontab), remarks


def _crontab_of(schedule: Row) -> Crontab:
    return Crontab.read(schedule, str(schedule.get("timezone") or "UTC"))


def _first(crontab: Crontab, after: datetime) -> datetime | None:
    return CronSchedule(crontab.rule, crontab.zone).next(after)
