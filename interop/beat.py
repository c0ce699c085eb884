"""Entries of a Celery application: its tasks and schedules as actions."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue

from interop.celery_rules import Crontab
from interop.celery_work import POLICY, work_of
from interop.entries import CannotMove, Entry, Known, check_said
from interop.recurrence import rule_of
from minutebook.beat.instants import RECORDED_WITHIN
from models.document import Document
from models.values import Flag, format_instant, parse_list, parse_text
from models.values.delays import rounded_up
from models.values.durations import format_span

LONGEST_S = timedelta(days=36_600).total_seconds()
NOTHING_TO_DO = "there is nothing to do"
UNKNOWN = "its last run is unknown, so its first one may be up to one interval later"
ROUNDED = "its instants are those of the sun, at the nearest full minute"

Interval = tuple[dict[str, Any], tuple[str, ...]]

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
        when: Any = Crontab.read(crontab, str(schedule.get("timezone") or zone)).when
    elif isinstance(solar := schedule.get("solar"), Mapping):
        when = solar_rule(*map(solar.get, ("event", "lat", "lon")))
        remarks += (ROUNDED,)
    elif isinstance(rrule := schedule.get("rrule"), Mapping):
        when, more = rule_of(rrule, zone, as_of)
        remarks += more
    else:
        when, more = _interval(one, as_of)
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


def continued(rule: dict[str, Any], due_at: datetime | None, as_of: datetime) -> Interval:
    """Return an interval that begins at `due_at`, and what differs.

    `due_at` is when the other scheduler would run it next, as it was known at `as_of`.
    """
    if due_at is None:
        return rule, (UNKNOWN,)
    shown = format_instant(rounded_up(due_at))
    is_overdue = due_at + RECORDED_WITHIN < as_of
    late = f"it was due at {shown}: its scheduler would run it at its start, the action would not"
    return {**rule, "starting_at": shown}, (late,) if is_overdue else ()


def instant_or_none(text: object) -> datetime | None:
    """Return an instant in UTC; None for a text that is none. Without an offset it is UTC."""
    try:
        at = text if isinstance(text, datetime) else datetime.fromisoformat(str(text))
        return (at.replace(tzinfo=UTC) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
