"""Entries of a Celery application: its tasks and schedules as actions."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue

from models.document import Document
from models.values import Flag, format_instant, parse_list, parse_text
from models.values.durations import format_span
from moving.celery_fires import CrontabFires
from moving.celery_rules import Crontab
from moving.celery_work import POLICY, work_of
from moving.entries import CannotMove, Entry, Fires, Known, check_said
from moving.phases import Interval, continued, instant_or_none
from moving.redbeat.rules import rule_of

LONGEST_S = timedelta(days=36_600).total_seconds()
NOTHING_TO_DO = "there is nothing to do"
ROUNDED = "its instants are those of the sun, at the nearest full minute"

Text = Annotated[str, BeforeValidator(parse_text)]
Items = Annotated[tuple[JsonValue, ...], BeforeValidator(parse_list)]


class TaskClass(Document):
    """The class of a task, and the methods of Celery's own `Task` that it overrides."""

    name: Text
    overrides: Items


# A field called `kwargs` collides with the **kwargs that mypy's plugin gives to __init__.
class BeatEntry(Document):  # type: ignore[no-redef]
    """One entry of beat's schedule.

    `unsaid` are the parts that JSON cannot hold, `unknown` the keys that beat does not know. A
    scheduler that keeps no `due_at` runs an interval that long after `last_run_at`. `next_at` are
    the instants at which it runs the entry next, as its own engine found.
    """

    name: Text
    task: Text
    args: Items = ()
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    options: dict[str, JsonValue] = Field(default_factory=dict)
    schedule: dict[str, JsonValue]
    enabled: Flag = True
    unsaid: Items = ()
    unknown: Items = ()
    last_run_at: Text | None = None
    due_at: Text | None = None
    next_at: Items | None = None
    remarks: Items = ()
    task_class: TaskClass | None = None


def entry_of(one: BeatEntry, where: str, zone: str, owner: str, as_of: datetime) -> Entry:
    """Return the entry of a Celery application in that zone; raises CannotMove.

    What its scheduler had done by then was known at `as_of`.
    """
    check_said(one.unsaid, "task")
    operations, remarks = work_of(one.task, one.args, one.kwargs, one.options)
    schedule = one.schedule
    crontab = schedule.get("crontab")
    if isinstance(crontab, Mapping):
        read = Crontab.read(crontab, str(schedule.get("timezone") or zone))
        when: Any = read.when
        fires: Fires | None = CrontabFires(read)
    elif isinstance(solar := schedule.get("solar"), Mapping):
        when, fires = solar_rule(*map(solar.get, ("event", "lat", "lon"))), None
        remarks += (ROUNDED,)
    elif isinstance(rrule := schedule.get("rrule"), Mapping):
        when, fires, more = rule_of(rrule, zone, as_of)
        remarks += more
    else:
        (when, more), fires = _interval(one, as_of), None
        remarks += more
    return Entry(
        name=one.name,
        where=where,
        owner=owner,
        active=one.enabled,
        operations=operations,
        when=when,
        policy=POLICY,
        remarks=(*remarks, *_remarks(one)),
        fires=fires,
        known=known_of(one.next_at, as_of),
    )


def known_of(next_at: Sequence[object] | None, as_of: datetime) -> Known | None:
    """Return the next instants of an entry in a file, None if it has none or other values."""
    found = [instant_or_none(one) for one in next_at or ()]
    instants = tuple(at for at in found if at is not None)
    return None if next_at is None or len(instants) < len(found) else Known(instants, as_of)


def _remarks(one: BeatEntry) -> Iterator[str]:
    yield from map(str, one.remarks)
    for key in one.unknown:
        yield f"its key {key!r} is unknown to beat, and is not carried over"
    yield from remarks_of(one.task_class)


def remarks_of(task_class: TaskClass | None) -> Iterator[str]:
    """Yield what a task's own class changes, if it has one."""
    if task_class is None:
        return
    name, methods = task_class.name, task_class.overrides
    if "apply_async" in methods:
        yield (
            f"its class {name} overrides apply_async, which Minutebook does not call: if that keeps"
            ' its runs apart, write "policy": {"overlap": "skip"}'
        )
    elif methods:
        shown = " and ".join(map(str, methods))
        yield f"its class {name} overrides {shown}: a worker that follows claims the run within it"


def _interval(one: BeatEntry, as_of: datetime) -> Interval:
    schedule: Mapping[str, Any] = one.schedule
    seconds = schedule.get("every_s")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        shown = schedule.get("other", schedule)
        raise CannotMove(
            f"its schedule {shown!r} is not a crontab, an interval or solar",
            "write an action with a cron rule or an interval for it",
        )
    rule = every(seconds)
    if schedule.get("relative"):
        return rule, ("`relative` rounds beat's instants; here they lie on the action's grid",)
    due_at, last_run_at = instant_or_none(one.due_at), instant_or_none(one.last_run_at)
    if due_at is None and last_run_at is not None:
        due_at = last_run_at + timedelta(seconds=seconds)
    return continued(rule, due_at, as_of)


def solar_rule(event: object, lat: Any, lon: Any) -> dict[str, Any]:
    """Return the rule of an event of the sun; raises CannotMove for other values."""
    try:
        return {"solar": event, "lat": float(lat), "lon": float(lon)}
    except (TypeError, ValueError):
        why = f"its place {lat!r}, {lon!r} is not a latitude and longitude"
        raise CannotMove(why, "write both as numbers") from None


def once(at: datetime | None, now: datetime) -> dict[str, str]:
    """Return the rule of one instant; raises CannotMove if it is none, or past."""
    if at is None or at <= now:
        shown = "unknown" if at is None else format_instant(at)
        raise CannotMove(f"it runs once, and its time is past ({shown})", NOTHING_TO_DO)
    return {"due_date": format_instant(at)}


def every(seconds: float) -> dict[str, Any]:
    """Return the rule of an interval; raises CannotMove for parts of a second, or if too long."""
    if seconds > LONGEST_S:
        raise CannotMove(f"its interval of {seconds:g} s is too long", "write a shorter one")
    if seconds <= 0 or seconds != int(seconds):
        why = f"its interval of {seconds:g} s is not a whole number of seconds"
        raise CannotMove(why, "let one run of the task do the work of several")
    return {"every": format_span(timedelta(seconds=int(seconds)))}
