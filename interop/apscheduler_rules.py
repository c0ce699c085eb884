"""APScheduler's triggers as rules of an action, exactly or not at all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from interop.beat import NOTHING_TO_DO, every, once
from interop.celery_rules import Crontab
from interop.cron_text import RULES, ranges_of, values_in
from interop.entries import CannotMove
from models.values import format_instant
from models.values.delays import rounded_up

SECOND = timedelta(seconds=1)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
POSITIONS = ("1st", "2nd", "3rd", "4th", "5th")
# The lowest and highest value of each field, and its name in a crontab of Celery.
FIELDS: Mapping[str, tuple[int, int, str]] = {
    "minute": (0, 59, "minute"),
    "hour": (0, 23, "hour"),
    "day": (1, 31, "day_of_month"),
    "month": (1, 12, "month_of_year"),
    "day_of_week": (0, 6, "day_of_week"),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """What a trigger is as an action: its `when`, and the bounds and remarks beside it."""

    when: Any
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    remarks: tuple[str, ...] = field(default=())


def rule_of(trigger: Mapping[str, Any], now: datetime) -> Rule:
    """Return a trigger as `python -m minutebook apscheduler` writes it; raises CannotMove."""
    match trigger.get("type"):
        case "cron":
            return _cron(trigger, now)
        case "interval":
            return _interval(trigger, now)
        case "calendar":
            return _calendar(trigger)
        case "date":
            return _date(trigger, now)
        case "or":
            return _any_of(trigger, now)
        case kind:
            shown = trigger.get("text", kind)
            raise CannotMove(f"its trigger {str(shown)[:100]!r} is not a rule of an action", RULES)


def _cron(trigger: Mapping[str, Any], now: datetime) -> Rule:
    fields = trigger.get("fields")
    if not isinstance(fields, Mapping):
        raise CannotMove("its cron trigger has no fields", RULES)
    texts = {name: str(fields.get(name, "*")).strip().lower() for name in (*FIELDS, "second")}
    _refuse_finer(fields, texts["second"])
    when = {**_when(texts, _zone_of(trigger)), **_jitter(trigger)}
    return Rule(when, *_bounds(trigger, now))


def _refuse_finer(fields: Mapping[str, Any], second: str) -> None:
    unknown = set(fields) - {*FIELDS, "year", "week", "second"}
    if unknown:
        raise CannotMove(f"its field {min(unknown)[:60]!r} is unknown", RULES)
    for name in ("year", "week"):
        if str(fields.get(name, "*")).strip() != "*":
            why = f"its {name} {fields[name]!r} is not a field of a cron rule"
            raise CannotMove(why, "use starts_at and ends_at, or days of the month")
    if second not in {"0", "00"}:
        why = f"its second {second!r} is not 0, and a cron rule is due at full minutes"
        raise CannotMove(why, 'write second="0", or an interval')


def _when(texts: Mapping[str, str], zone: str) -> dict[str, Any]:
    """Return the rule of a cron trigger; raises CannotMove."""
    parts = [part.strip() for part in texts["day"].split(",")]
    if not any("last" in part or " " in part for part in parts):
        return Crontab.read(dict(_crontab_fields(texts)), zone).when
    signs = [sign for part in parts for sign in _signs(part)]
    crontab = Crontab.read(dict(_crontab_fields({**texts, "day": "*"})), zone)
    minute, hour, _, month, weekday = crontab.rule.split(" ")
    of_weekdays = [one for one in signs if one[:3] in WEEKDAYS]
    of_dates = [one for one in signs if one not in of_weekdays]
    if weekday == "*":
        # Either is enough, as for a cron rule with days of both kinds.
        days = ",".join(of_dates) or "*", ",".join(of_weekdays) or "*"
        return {"cron_rule": f"{minute} {hour} {days[0]} {month} {days[1]}", "timezone": zone}
    if of_weekdays:
        raise CannotMove("its n-th weekdays must be other weekdays as well", "make a job of each")
    return crontab.with_days({-1 if one == "L" else int(one) for one in of_dates})


def _signs(part: str) -> Iterator[str]:
    """Yield an expression of days as signs and numbers of a cron rule; raises CannotMove."""
    position, _, weekday = part.partition(" ")
    if part == "last":
        yield "L"
    elif weekday in WEEKDAYS and position == "last":
        yield f"{weekday}L"
    elif weekday in WEEKDAYS and position in POSITIONS:
        yield f"{weekday}#{POSITIONS.index(position) + 1}"
    else:
        yield from map(str, sorted(values_in("day", part, *FIELDS["day"][:2])))


def _crontab_fields(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the fields of the same crontab in Celery, in which Sunday is 0."""
    for name, (low, high, celery) in FIELDS.items():
        text = texts[name]
        values = values_in(name, text, low, high)
        if name == "day_of_week":
            yield celery, "*" if len(values) == 7 else ranges_of({(day + 1) % 7 for day in values})
        else:
            # A field that is one step stays as it is written.
            yield celery, text if text.startswith("*") and "," not in text else ranges_of(values)


def _calendar(trigger: Mapping[str, Any]) -> Rule:
    """Return a CalendarIntervalTrigger: so many months, or days, from its first date."""
    years, months, weeks, days = _numbers(trigger, "interval", 4)
    hour, minute, second = _numbers(trigger, "time", 3)
    if second:
        raise CannotMove(f"its time has {second} seconds", "write a time at a full minute")
    if (years or months) and (weeks or days):
        raise CannotMove("it adds months and days at once", "make a job of each")
    by_months, by_days = 12 * years + months, 7 * weeks + days
    parts = [f"FREQ={'MONTHLY' if by_months else 'DAILY'}"]
    parts += [f"INTERVAL={number}"] if (number := by_months or by_days) > 1 else []
    ends = trigger.get("end_date")
    parts += [f"UNTIL={ends.replace('-', '')}"] if isinstance(ends, str) else []
    when = {
        "rrule": ";".join(parts),
        "at": f"{hour:02}:{minute:02}",
        "timezone": _zone_of(trigger),
        "starting_at": trigger.get("start_date"),
    }
    return Rule({**when, **_jitter(trigger)})


def _numbers(trigger: Mapping[str, Any], key: str, count: int) -> list[int]:
    found = trigger.get(key)
    if not isinstance(found, list) or [type(one) for one in found] != [int] * count:
        raise CannotMove(f"its {key} {str(found)[:60]!r} is not {count} numbers", RULES)
    return found


def _zone_of(trigger: Mapping[str, Any]) -> str:
    zone = trigger.get("timezone")
    if not isinstance(zone, str):
        raise CannotMove("its time zone has no name", "give the trigger a zone such as UTC")
    return zone


def _interval(trigger: Mapping[str, Any], now: datetime) -> Rule:
    seconds = trigger.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise CannotMove(f"its interval {seconds!r} is not a number of seconds", RULES)
    when = every(seconds)
    starting_at = instant_of(trigger.get("start_date"))
    if starting_at is not None:
        when["starting_at"] = format_instant(starting_at)
    jitter, bounds = _jitter(trigger), _bounds(trigger, now)
    if not jitter or int(trigger["jitter"]) <= seconds:
        return Rule({**when, **jitter}, *bounds)
    whole = {"jitter": f"PT{int(seconds)}S", "jitter_each": True}
    remark = f"its jitter of {trigger['jitter']} s is cut to its interval"
    return Rule({**when, **whole}, *bounds, (remark,))


def _jitter(trigger: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a jitter, which APScheduler draws for each run; empty for none."""
    jitter = trigger.get("jitter")
    if isinstance(jitter, bool) or not isinstance(jitter, int | float) or jitter < 1:
        return {}
    return {"jitter": f"PT{int(jitter)}S", "jitter_each": True}


def _date(trigger: Mapping[str, Any], now: datetime) -> Rule:
    return Rule(once(instant_of(trigger.get("run_date")), now))


def _any_of(trigger: Mapping[str, Any], now: datetime) -> Rule:
    rules = [rule_of(one, now) for one in trigger.get("triggers", ())]
    if not rules:
        raise CannotMove("its trigger has no members", RULES)
    if any("every" in one.when for one in rules):
        why = "an interval is one of its triggers, and a list of rules cannot hold one"
        raise CannotMove(why, "make a job of each trigger")
    bounds = {(one.starts_at, one.ends_at) for one in rules if "cron_rule" in one.when}
    if len(bounds) > 1:
        raise CannotMove("its triggers have different bounds", "make a job of each trigger")
    remarks = tuple(dict.fromkeys(remark for one in rules for remark in one.remarks))
    # The jitter of the whole is drawn for the instants of each.
    jitter = _jitter(trigger)
    whens = [one.when if "due_date" in one.when else {**jitter, **one.when} for one in rules]
    if jitter and any("due_date" in one for one in whens):
        remarks += (f"its jitter of {trigger['jitter']} s is left out for its dates",)
    return Rule(whens, *(*bounds, (None, None))[0], remarks)


def _bounds(trigger: Mapping[str, Any], now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the first instant and the end, which is not included here; raises CannotMove."""
    starts_at, last = instant_of(trigger.get("start_date")), _parsed(trigger.get("end_date"))
    ends_at = None if last is None else last.replace(microsecond=0) + SECOND
    if ends_at is not None and ends_at <= now:
        raise CannotMove(f"it ended at {format_instant(ends_at)}", NOTHING_TO_DO)
    return (starts_at if starts_at and starts_at > now else None), ends_at


def instant_of(value: object) -> datetime | None:
    """Return an instant in whole seconds, rounded up; raises CannotMove for any other value."""
    at = _parsed(value)
    return None if at is None else rounded_up(at)


def _parsed(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise CannotMove(f"{str(value)[:60]!r} is not an instant", "correct it") from None
