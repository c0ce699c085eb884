"""Entries of a Celery application: its tasks and schedules as actions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, JsonValue

from interop.celery_rules import Crontab
from interop.celery_work import POLICY, work_of
from interop.entries import CORRECT, CannotMove, Entry, Known, check_said
from interop.recurrence import rule_of
from minutebook.beat.instants import RECORDED_WITHIN
from models.document import Document
from models.values import Flag, format_instant, parse_list, parse_text
from models.values.delays import rounded_up
from models.values.durations import format_span

LONGEST_S = timedelta(days=36_600).total_seconds()
NOTHING_TO_DO = "there is nothing to do"
UNKNOWN = "its last run is unknown, so its first one may be up to one interval later"
RELATIVE = "`relative` rounds beat's instants; here they lie on the action's grid"
ROUNDED = "its instants are those of the sun, at the nearest full minute"

Text = Annotated[str, BeforeValidator(parse_text)]
Items = Annotated[tuple[JsonValue, ...], BeforeValidator(parse_list)]


# A field called `kwargs` collides with the **kwargs that mypy's plugin gives to __init__.
class BeatEntry(Document):  # type: ignore[no-redef]
    """One entry of a scheduler of Celery, with the message that Celery makes for it.

    `unsaid` are the parts that no action can hold. A scheduler that keeps no `due_at` runs an
    interval that long after `last_run_at`. `next_at` are the instants at which it runs the entry
    next, as its own engine found.
    """

    name: Text
    task: Text
    args: Items = ()
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    options: dict[str, JsonValue] = Field(default_factory=dict)
    schedule: dict[str, JsonValue]
    description: Text = ""
    enabled: Flag = True
    starts_at: Text | None = None
    ends_at: Text | None = None
    # It runs at one instant, at which it has run already.
    once: Flag = False
    has_run: Flag = False
    unsaid: Items = ()
    last_run_at: Text | None = None
    due_at: Text | None = None
    next_at: Items | None = None
    remarks: Items = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Where entries come from: the application's zone, and when their file was written and read."""

    zone: str
    written_at: datetime
    now: datetime
    owner: str = "import:beat"


def entry_of(one: BeatEntry, where: str, source: Source) -> Entry:
    """Return the entry of a Celery application; raises CannotMove."""
    check_said(one.unsaid, "task")
    operations, remarks = work_of(one.task, one.args, one.kwargs, one.options)
    bounds = _bounds(one, source.now)
    rule = _once(one, source.now) if one.once else _rule(one, source)
    return Entry(
        name=one.name,
        where=where,
        description=one.description.strip(),
        owner=source.owner,
        active=one.enabled,
        operations=operations,
        when=rule.when,
        policy={**POLICY, **{key: format_instant(at) for key, at in bounds.items()}},
        remarks=(*remarks, *rule.remarks, *map(str, one.remarks)),
        unknown=rule.unknown,
        known=known_of(one.next_at, source.written_at),
    )


class Rule(NamedTuple):
    """The rule of an action, what differs in it, and what cannot be known of it."""

    when: Any
    remarks: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def _bounds(one: BeatEntry, now: datetime) -> dict[str, datetime]:
    """Return the policy's first and last instants; raises CannotMove for what has expired."""
    ends_at = instant_of(one.ends_at)
    if ends_at is not None and ends_at <= now:
        raise CannotMove(f"it expired at {format_instant(ends_at)}", NOTHING_TO_DO)
    found = {"starts_at": instant_of(one.starts_at), "ends_at": ends_at}
    return {key: at for key, at in found.items() if at is not None}


def instant_of(text: object) -> datetime | None:
    """Return an instant in whole seconds, rounded up, None for none; raises CannotMove."""
    if text is None:
        return None
    at = instant_or_none(text)
    if at is None:
        raise CannotMove(f"{str(text)[:60]!r} is not an instant", CORRECT)
    return rounded_up(at)


def _once(one: BeatEntry, now: datetime) -> Rule:
    """Return the rule of an entry that runs at its next instant alone."""
    if one.has_run:
        raise CannotMove("it runs once, and has run", NOTHING_TO_DO)
    if not one.enabled:
        raise CannotMove("it runs once and is disabled: it has run, or must not", NOTHING_TO_DO)
    given = one.schedule.get("clocked", next(iter(one.next_at or ()), None))
    return Rule(once(instant_of(given), now))


def _rule(one: BeatEntry, source: Source) -> Rule:
    schedule = one.schedule
    if isinstance(crontab := schedule.get("crontab"), Mapping):
        return Rule(Crontab.read(crontab, str(schedule.get("timezone") or source.zone)).when)
    if isinstance(solar := schedule.get("solar"), Mapping):
        return Rule(solar_rule(*map(solar.get, ("event", "lat", "lon"))), (ROUNDED,))
    if isinstance(rrule := schedule.get("rrule"), Mapping):
        return Rule(*rule_of(rrule, source.zone, source.written_at))
    seconds = schedule.get("every_s")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise CannotMove(
            f"its schedule {schedule.get('other', schedule)!r} is not a crontab, an interval or"
            " solar",
            "write an action with a cron rule or an interval for it",
        )
    return _interval(one, seconds, source.written_at)


def known_of(next_at: Sequence[object] | None, as_of: datetime) -> Known | None:
    """Return the next instants of an entry in a file, None if it has none or other values."""
    found = [instant_or_none(one) for one in next_at or ()]
    instants = tuple(at for at in found if at is not None)
    return None if next_at is None or len(instants) < len(found) else Known(instants, as_of)


def _interval(one: BeatEntry, seconds: float, as_of: datetime) -> Rule:
    rule = every(seconds)
    if one.schedule.get("relative"):
        return Rule(rule, (RELATIVE,))
    due_at, last_run_at = instant_or_none(one.due_at), instant_or_none(one.last_run_at)
    if due_at is None and last_run_at is not None:
        due_at = last_run_at + timedelta(seconds=seconds)
    if due_at is None:
        return Rule(rule, unknown=(UNKNOWN,))
    found = continued(rule, max(due_at, instant_of(one.starts_at) or due_at), as_of)
    # One that is disabled is due whenever it is enabled again.
    return found if one.enabled else found._replace(remarks=())


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
    if seconds <= 0:
        why = f"its interval is {seconds:g} s: its scheduler sends it again and again, at once"
        raise CannotMove(why, "write how often it has to run")
    if seconds != int(seconds):
        why = f"its interval of {seconds:g} s is not a whole number of seconds"
        raise CannotMove(why, "let one run of the task do the work of several")
    return {"every": format_span(timedelta(seconds=int(seconds)))}


def continued(rule: dict[str, Any], due_at: datetime, as_of: datetime) -> Rule:
    """Return an interval that begins at `due_at`, and what differs.

    `due_at` is when the other scheduler would run it next, as it was known at `as_of`.
    """
    shown = format_instant(rounded_up(due_at))
    is_overdue = due_at + RECORDED_WITHIN < as_of
    late = f"it was due at {shown}: its scheduler would run it at its start, the action would not"
    return Rule({**rule, "starting_at": shown}, (late,) if is_overdue else ())


def instant_or_none(text: object) -> datetime | None:
    """Return an instant in UTC; None for a text that is none. Without an offset it is UTC."""
    try:
        at = text if isinstance(text, datetime) else datetime.fromisoformat(str(text))
        return (at.replace(tzinfo=UTC) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
