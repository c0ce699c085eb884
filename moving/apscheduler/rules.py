"""APScheduler's triggers as rules of an action, exactly or not at all."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from models.values import format_instant
from models.values.delays import rounded_up
from moving.beat import NOTHING_TO_DO, every, once
from moving.celery_rules import Crontab
from moving.cron_text import RULES, ranges_of, values_in
from moving.entries import CannotMove

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
_POSITION = re.compile(rf"({'|'.join(POSITIONS)}) ({'|'.join(WEEKDAYS)})")


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
        case "date":
            return _date(trigger, now)
        case "or":
            return _any_of(trigger, now)
        case kind:
            shown = trigger.get("text", kind)
            raise CannotMove(f"its trigger {str(shown)[:100]!r} is not a rule of an action", RULES)


def _cron(trigger: Mapping[str, Any], now: datetime) -> Rule:
    zone, fields = trigger.get("timezone"), trigger.get("fields")
    if not isinstance(fields, Mapping):
        raise CannotMove("its cron trigger has no fields", RULES)
    if not isinstance(zone, str):
        raise CannotMove("its time zone has no name", "give the trigger a zone such as UTC")
    texts = {name: str(fields.get(name, "*")).strip().lower() for name in (*FIELDS, "second")}
    _refuse_finer(fields, texts["second"])
    when = {"cron_rule": _rule(texts, zone), "timezone": zone}
    jitter = trigger.get("jitter")
    remarks = (f"its jitter of {jitter} s is left out",) if jitter else ()
    return Rule(when, *_bounds(trigger, now), remarks)


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


def _rule(texts: Mapping[str, str], zone: str) -> str:
    """Return the cron rule of a trigger; raises CannotMove."""
    if "last" not in texts["day"]:
        return Crontab.read(dict(_crontab_fields(texts)), zone).rule
    if texts["day_of_week"] != "*":
        raise CannotMove("its last days must be weekdays as well", "check the weekday in it")
    others = Crontab.read(dict(_crontab_fields({**texts, "day": "*"})), zone).rule.split(" ")
    signs = [_last(part.strip()) for part in texts["day"].split(",")]
    is_of_weekdays = {"#" in sign or sign[:-1] in WEEKDAYS for sign in signs}
    if len(is_of_weekdays) > 1:
        raise CannotMove("its days are dates and n-th weekdays", "make a job of each")
    others[4 if is_of_weekdays == {True} else 2] = ",".join(signs)
    return " ".join(others)


def _last(part: str) -> str:
    """Return a day beside `last` as a sign or a number of a rule; raises CannotMove."""
    if part == "last":
        return "L"
    if part.isdigit() and 1 <= int(part) <= 31:
        return part
    position, _, weekday = part.partition(" ")
    if weekday in WEEKDAYS and position == "last":
        return f"{weekday}L"
    if weekday in WEEKDAYS and position in POSITIONS:
        return f"{weekday}#{POSITIONS.index(position) + 1}"
    raise CannotMove(f"its day {part[:60]!r} is not part of a cron rule", RULES)


def _crontab_fields(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the fields of the same crontab in Celery, in which Sunday is 0."""
    days = texts["day"].split(",")
    positions = [found for one in days if (found := _POSITION.fullmatch(one.strip()))]
    for name, (low, high, celery) in FIELDS.items():
        text = texts[name]
        if name == "day" and positions:
            yield celery, _weeks(positions, len(days))
        elif name == "day_of_week":
            values = values_in(name, text, low, high)
            if positions:
                values &= {WEEKDAYS.index(positions[0][2])}
            yield celery, "*" if len(values) == 7 else ranges_of({(day + 1) % 7 for day in values})
        else:
            # A field that is one step stays as it is written.
            values = values_in(name, text, low, high)
            yield celery, text if text.startswith("*") and "," not in text else ranges_of(values)


def _weeks(positions: Sequence[re.Match[str]], parts: int) -> str:
    """Return the days of the month of the n-th weekdays: the 1st is one of the days 1 to 7."""
    if len(positions) != parts or len({one[2] for one in positions}) > 1:
        raise CannotMove("its days are the n-th of several weekdays", "make a job of each")
    weeks = [POSITIONS.index(one[1]) for one in positions]
    return ranges_of(
        {day for week in weeks for day in range(7 * week + 1, 7 * week + 8) if day < 32}
    )


def _interval(trigger: Mapping[str, Any], now: datetime) -> Rule:
    seconds = trigger.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise CannotMove(f"its interval {seconds!r} is not a number of seconds", RULES)
    when = every(seconds)
    starting_at = instant_of(trigger.get("start_date"))
    if starting_at is not None:
        when["starting_at"] = format_instant(starting_at)
    jitter = trigger.get("jitter")
    if not jitter:
        return Rule(when, *_bounds(trigger, now))
    when["jitter"] = f"PT{int(jitter)}S"
    remark = f"its jitter is one offset within {int(jitter)} s for all runs of the action"
    return Rule(when, *_bounds(trigger, now), (remark,))


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
    if trigger.get("jitter"):
        remarks += (f"its jitter of {trigger['jitter']} s is left out",)
    return Rule([one.when for one in rules], *(*bounds, (None, None))[0], remarks)


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
