"""Timers of systemd with their services, as entries."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from cron import InvalidRule
from cron.fields import WEEKDAYS
from cron.zone import canonical_name
from models.action.policy import LONGEST_LOOK_BACK, SHORTEST_LOOK_BACK
from models.action.rule import LONGEST_INTERVAL
from models.values.durations import format_span
from moving.celery_rules import Crontab
from moving.cron_text import RULES, ranges_of, values_in
from moving.entries import CannotMove, Entry, Fires, Refused, entry_or_refused
from moving.systemd.service import OF_SERVICES, account_of, command_of
from moving.systemd.unit import ON, Section, Unit, last, span_of, unit_of
from moving.wall_fires import DayFires, WallFires
from tasks.steps.command import STEP

OWNER = "import:systemd"
MINUTE = timedelta(minutes=1)
SHORT = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "semiannually": "*-01,07-01 00:00:00",
    "yearly": "*-01-01 00:00:00",
    "annually": "*-01-01 00:00:00",
}
# Spans that count from a start of the machine, the service or the timer itself.
MONOTONIC = ("OnActiveSec", "OnBootSec", "OnStartupSec", "OnUnitActiveSec", "OnUnitInactiveSec")
# Those of a timer that waits after each run; the others begin it.
FROM_END = ("OnActiveSec", "OnBootSec", "OnStartupSec", "OnUnitInactiveSec")
DAYS = {name: day for day, name in enumerate(WEEKDAYS)} | {
    name: day
    for day, name in enumerate(
        ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
    )
}
# The settings of each section that are read, or do not affect what runs when. Others are reported.
READ: Mapping[str, frozenset[str]] = {
    "Unit": frozenset({"After", "Before", "Description", "Documentation"}),
    "Timer": frozenset(
        {
            "AccuracySec",
            "FixedRandomDelay",
            "OnCalendar",
            *FROM_END,
            "Persistent",
            "RandomizedDelaySec",
            "Unit",
        }
    ),
    "Service": OF_SERVICES,
}
# Values that switch a setting off.
OFF = frozenset({"0", "0s", "false", "no", "off"})
# Settings whose 0 is a value: the account root.
NUMBERED = frozenset({"User", "Group", "UMask"})
STORED_IS_DUE = "its first run is due when the action is stored, and no start of the machine is"


def entry_of(file: Path, timer: Unit, service: Unit | None, zone: str) -> Entry | Refused:
    """Return the entry of a timer; `zone` is that of its machine."""
    return entry_or_refused(file.stem, file.name, partial(_entry, file, timer, service, zone))


def _entry(file: Path, timer: Unit, service: Unit | None, zone: str) -> Entry:
    if file.stem.endswith("@"):
        instead = f"copy it and its service as {file.stem}NAME for each, without %i"
        raise CannotMove("it is a template, of which systemd runs instances", instead)
    own = timer.get("Timer", {})
    rules = [{**rule, **_jitter(own)} for rule in _rules(own, zone)]
    if not rules:
        raise CannotMove("it has no OnCalendar", RULES)
    if service is None:
        why = "its service file is not beside it"
        raise CannotMove(why, f"name the folder that has {service_of(file.stem, timer)} too")
    # Units of users, not of the machine, are in a folder of this name.
    of_service, is_of_user = service.get("Service", {}), file.absolute().parent.name == "user"
    command, limit = command_of(of_service, is_of_user=is_of_user)
    only = rules[0] if len(rules) == 1 else None
    several = () if only else ("the instants of its several OnCalendar are not compared",)
    left_out = (*_left_out("timer", timer), *_left_out("service", service))
    return Entry(
        name=file.stem,
        where=file.name,
        description=last(timer.get("Unit", {}), "Description"),
        owner=OWNER,
        operations={STEP: command},
        when=only or rules,
        policy={"look_back": format_span(_look_back(own)), "time_limit": format_span(limit)},
        remarks=(*several, *_late(own), *account_of(of_service, is_of_user=is_of_user), *left_out),
        fires=_fires(only),
    )


def _rules(own: Section, zone: str) -> list[dict[str, Any]]:
    """Return the rules of a timer; raises CannotMove for one that counts from a start."""
    counted = [name for name in MONOTONIC if own.get(name)]
    if not counted:
        return [_when(text, zone) for text in own.get("OnCalendar", ())]
    # The first run of an action that counts from ends is due when it is stored, as after a boot.
    others = [name for name in counted if name not in FROM_END]
    if others or counted[-1] != FROM_END[-1] or own.get("OnCalendar"):
        why = f"its {(others or counted)[0]} counts from a start, not from the clock"
        raise CannotMove(why, 'write an action with an interval: {"every": …}')
    every = span_of(own, FROM_END[-1])
    if not every:
        raise CannotMove(f"its {FROM_END[-1]} is no interval", "correct the unit")
    return [{"every": format_span(min(every, LONGEST_INTERVAL)), "from": "end"}]


def _fires(rule: Mapping[str, Any] | None) -> Fires | None:
    """Return when systemd runs its only calendar; None for several, and without any."""
    if rule is None or "every" in rule:
        return None
    if "rrule" in rule:
        return DayFires.of(rule)
    return WallFires(rule["cron_rule"], rule["timezone"], once=True)


def service_of(stem: str, timer: Unit) -> str:
    """Return the file name of a timer's service."""
    return last(timer.get("Timer", {}), "Unit") or f"{stem}.service"


def _left_out(what: str, unit: Unit) -> Iterator[str]:
    """Yield which settings of a unit the action does not have, if any."""
    found = [
        f"{name}={values[-1]}"
        for section, known in READ.items()
        for name, values in unit.get(section, {}).items()
        if name not in known and values and (values[-1].lower() not in OFF or name in NUMBERED)
    ]
    if found:
        yield f"left out of its {what}: {', '.join(found)}"


def _jitter(own: Section) -> dict[str, Any]:
    """Return the keys of a delay at random: systemd draws it for each run, unless it is fixed."""
    span = span_of(own, "RandomizedDelaySec")
    if not span:
        return {}
    jitter = {"jitter": format_span(min(span, LONGEST_INTERVAL))}
    is_fixed = last(own, "FixedRandomDelay").lower() in ON
    return jitter if is_fixed else {**jitter, "jitter_each": True}


def _late(own: Section) -> Iterator[str]:
    """Yield at which other instants than the action systemd runs a timer."""
    if own.get("AccuracySec"):
        yield f"its AccuracySec={last(own, 'AccuracySec')} delays nothing: it is due on time"
    if own.get(FROM_END[-1]):
        yield STORED_IS_DUE


def _look_back(own: Section) -> timedelta:
    accuracy = span_of(own, "AccuracySec") or MINUTE
    if last(own, "Persistent").lower() in ON:
        return LONGEST_LOOK_BACK
    return min(max(accuracy, SHORTEST_LOOK_BACK), LONGEST_LOOK_BACK)


def _when(text: str, zone: str) -> dict[str, Any]:
    """Return the rule of an OnCalendar; raises CannotMove."""
    short, _, rest = text.strip().partition(" ")
    days, date, time, own_zone = _tokens(f"{SHORT.get(short.lower(), short)} {rest}", text)
    zone = own_zone or zone
    hour, minute, second = [*time.split(":"), "00"][:3]
    refused = f"its OnCalendar {text[:60]!r}"
    if "-" not in date and "~" not in date:
        raise CannotMove(f"{refused} has the date {date[:60]!r}", "write it as *-*-01")
    date, _, from_end = date.partition("~")
    *year, month, day = f"{date}-".split("-") if from_end else date.split("-")
    if year not in ([], ["*"]):
        raise CannotMove(f"{refused} names a year", "write a due date")
    if values_in("second", _ranged(second), 0, 59) != {0}:
        raise CannotMove(f"{refused} is not at full minutes", "write an interval")
    fields = {
        "minute": _field("minute", minute, 0, 59),
        "hour": _field("hour", hour, 0, 23),
        "day_of_month": _field("day", day, 1, 31) if day else "*",
        "month_of_year": _field("month", month, 1, 12),
        "day_of_week": _weekdays(days) if days else "*",
    }
    crontab = Crontab.read(fields, zone)
    # As in Celery, both the day of the month and the weekday have to match.
    return crontab.when if day else _from_the_end(crontab, _last_days(from_end))


def _last_days(text: str) -> set[int]:
    """Return the days that `~` counts from a month's end, the last as -1; `07/1` are seven."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, step = part.partition("/")
        if not (first.isdigit() and 1 <= int(first) <= 31 and (not step or step.isdigit())):
            raise CannotMove(f"its day ~{text[:60]!r} is no day before a month's end", RULES)
        found |= set(range(-int(first), 0, int(step) or 1)) if step else {-int(first)}
    return found


def _from_the_end(crontab: Crontab, days: set[int]) -> dict[str, Any]:
    """Return the rule of days that count from a month's end, at the crontab's other fields."""
    minute, hour, _, month, weekday = crontab.rule.split(" ")
    if weekday == "*":
        signs = ",".join("L" if day == -1 else f"L{day + 1}" for day in sorted(days))
        return {"cron_rule": f"{minute} {hour} {signs} {month} *", "timezone": crontab.zone}
    return crontab.with_days(days)


def _tokens(text: str, written: str) -> tuple[str, str, str, str]:
    """Return weekdays, date, time and zone of an OnCalendar, each with its default."""
    days, date, time, zone = "", "*-*-*", "00:00:00", ""
    for part in text.split():
        if ":" in part:
            time = part
        elif part[0].isdigit() or part[0] == "*":
            date = part
        elif _is_weekdays(part) and not days:
            days = part.lower()
        elif _is_zone(part):
            zone = part
        else:
            raise CannotMove(f"its OnCalendar {written[:60]!r} has the part {part[:60]!r}", RULES)
    return days, date, time, zone


def _is_weekdays(token: str) -> bool:
    return all(part in DAYS for part in re.split(r"\.\.|-|,", token.lower()) if part)


def _is_zone(token: str) -> bool:
    try:
        canonical_name(token)
    except InvalidRule:
        return False
    return True


def _weekdays(text: str) -> str:
    """Return the weekdays of `Mon..Fri,Sun`, in which Sunday is the last."""
    days = {name: (day - 1) % 7 for name, day in DAYS.items()}
    values = values_in("weekday", text, 0, 6, days)
    return "*" if len(values) == 7 else ranges_of({(day + 1) % 7 for day in values})


def _field(name: str, text: str, low: int, high: int) -> str:
    values = values_in(name, _ranged(text), low, high)
    if len(values) == high - low + 1:
        return "*"
    # `0/15` and `*/15` are the same.
    step = re.fullmatch(rf"(?:\*|0*{low})/(\d+)", text, re.ASCII)
    return f"*/{step[1]}" if step else ranges_of(values)


def _ranged(text: str) -> str:
    return text.replace("..", "-")


def entries_of(
    units: Sequence[tuple[Path, str, str | None]], zone: str
) -> Iterator[Entry | Refused]:
    """Yield the entries of timers: their files, their texts and those of their services."""
    for file, timer, service in units:
        yield entry_of(file, unit_of(timer), None if service is None else unit_of(service), zone)
