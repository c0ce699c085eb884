"""Timers of systemd with their services, as entries."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from cron import CronSchedule, InvalidRule
from cron.fields import WEEKDAYS
from cron.zone import canonical_name
from models.action.policy import LONGEST_LOOK_BACK, SHORTEST_LOOK_BACK
from models.durations import format_span
from moving.celery_rules import Crontab, ranges_of
from moving.cron_text import RULES, values_in
from moving.entries import CannotMove, Entry, Refused, entry_or_refused
from moving.wall_fires import WallFires

OWNER = "import:systemd"
COMMAND = "command"
LONGEST_RUN = timedelta(days=7)
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
DAYS = {name: day for day, name in enumerate(WEEKDAYS)} | {
    name: day
    for day, name in enumerate(
        ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
    )
}
# A hundred years, longer than any limit.
MOST_SECONDS = 3_153_600_000
_SPAN = re.compile(r"(\d{1,9}) *([a-z]*)", re.ASCII)
_UNITS = {
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3_600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 604_800),
}

Unit = Mapping[str, Mapping[str, Sequence[str]]]


def unit_of(text: str) -> dict[str, dict[str, list[str]]]:
    """Return the values of a unit file by section and key; an empty value forgets those before."""
    found: dict[str, dict[str, list[str]]] = {}
    section = ""
    for line in re.split("[\r\n]+", text.replace("\\\n", " ")):
        line = line.strip()  # noqa: PLW2901
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif line and line[0] not in "#;" and "=" in line:
            key, _, value = (part.strip() for part in line.partition("="))
            values = found.setdefault(section, {}).setdefault(key, [])
            values.append(value) if value else values.clear()
    return found


def entry_of(file: Path, timer: Unit, service: Unit | None, zone: str) -> Entry | Refused:
    """Return the entry of a timer; `zone` is that of its machine."""
    return entry_or_refused(file.stem, file.name, partial(_entry, file, timer, service, zone))


def _entry(file: Path, timer: Unit, service: Unit | None, zone: str) -> Entry:
    own = timer.get("Timer", {})
    counted = [name for name in MONOTONIC if own.get(name)]
    if counted:
        why = f"its {counted[0]} counts from a start, not from the clock"
        raise CannotMove(why, 'write an action with an interval: {"every": …}')
    rules = [_when(text, zone) for text in own.get("OnCalendar", ())]
    if not rules:
        raise CannotMove("it has no OnCalendar", RULES)
    remarks = [] if len(rules) == 1 else ["the instants of its several OnCalendar are not compared"]
    if _span(own, "RandomizedDelaySec"):
        shown = own["RandomizedDelaySec"][-1]
        remarks.append(f"its RandomizedDelaySec of {shown} is left out")
    if service is None:
        why = "its service file is not beside it"
        raise CannotMove(why, f"name the folder that has {service_of(file.stem, timer)} too")
    command, limit, more = _command(service.get("Service", {}))
    persistent = (own.get("Persistent") or ["no"])[-1].lower() in {"1", "yes", "true", "on"}
    only = rules[0] if len(rules) == 1 else None
    return Entry(
        name=file.stem,
        where=file.name,
        description=" ".join((timer.get("Unit", {}).get("Description") or [""])[-1:]),
        owner=OWNER,
        operations={COMMAND: command},
        when=only or rules,
        policy={
            "look_back": format_span(
                LONGEST_LOOK_BACK if persistent else max(_accuracy(own), SHORTEST_LOOK_BACK)
            ),
            "time_limit": format_span(limit),
        },
        remarks=(*remarks, *more),
        fires=WallFires(only["cron_rule"], only["timezone"], once=True) if only else None,
    )


def service_of(stem: str, timer: Unit) -> str:
    """Return the file name of a timer's service."""
    return (timer.get("Timer", {}).get("Unit") or [f"{stem}.service"])[-1]


def _accuracy(own: Mapping[str, Sequence[str]]) -> timedelta:
    return min(_span(own, "AccuracySec") or MINUTE, LONGEST_LOOK_BACK)


def _span(own: Mapping[str, Sequence[str]], key: str) -> timedelta | None:
    """Return a span of systemd in seconds or parts; None for none, or `infinity`."""
    text = (own.get(key) or [""])[-1].lower()
    parts = _SPAN.findall(text)
    if not parts or _SPAN.sub("", text).strip() or any(unit not in _UNITS for _, unit in parts):
        return None
    seconds = sum(int(number) * _UNITS[unit] for number, unit in parts)
    return timedelta(seconds=min(seconds, MOST_SECONDS))


def _when(text: str, zone: str) -> dict[str, str]:
    """Return the cron rule of an OnCalendar; raises CannotMove."""
    days, date, time, own_zone = _tokens(SHORT.get(text.lower(), text), text)
    zone = own_zone or zone
    hour, minute, second = [*time.split(":"), "00"][:3]
    refused = f"its OnCalendar {text[:60]!r}"
    if "-" not in date:
        raise CannotMove(f"{refused} has the date {date[:60]!r}", "write it as *-*-01")
    *year, month, day = date.split("-")
    if year not in ([], ["*"]):
        raise CannotMove(f"{refused} names a year", "write a due date")
    if "~" in date:
        raise CannotMove(f"{refused} counts from the end of the month", RULES)
    if values_in("second", _ranged(second), 0, 59) != {0}:
        raise CannotMove(f"{refused} is not at full minutes", "write an interval")
    fields = {
        "minute": _field("minute", minute, 0, 59),
        "hour": _field("hour", hour, 0, 23),
        "day_of_month": _field("day", day, 1, 31),
        "month_of_year": _field("month", month, 1, 12),
        "day_of_week": _weekdays(days) if days else "*",
    }
    # As in Celery, both the day of the month and the weekday have to match.
    rule = Crontab.read(fields, zone).rule
    try:
        CronSchedule(rule, zone)
    except InvalidRule as error:
        raise CannotMove(str(error), "correct the timer") from None
    return {"cron_rule": rule, "timezone": zone}


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


def _command(own: Mapping[str, Sequence[str]]) -> tuple[dict[str, Any], timedelta, tuple[str, ...]]:
    """Return the step `command` of a service, its time limit, and what it leaves out."""
    lines = own.get("ExecStart", ())
    if len(lines) != 1 or own.get("ExecStartPre") or own.get("ExecStartPost"):
        why = f"its service has {len(lines)} ExecStart, and programs before or after"
        raise CannotMove(why, "write a script that runs all of them in turn")
    (line,) = lines
    if line[0] in "-@:+!" or "%" in line or "$" in line:
        why = f"its ExecStart {line[:60]!r} has prefixes, specifiers or variables"
        raise CannotMove(why, "write the command without them")
    try:
        found: dict[str, Any] = {"run": shlex.split(line)}
        pairs = [one for text in own.get("Environment", ()) for one in shlex.split(text)]
    except ValueError as error:
        raise CannotMove(f"its quotes are not closed: {error}", "correct the service") from None
    if own.get("WorkingDirectory"):
        found["cwd"] = own["WorkingDirectory"][-1].removeprefix("-")
    if pairs:
        found["env"] = dict(one.partition("=")[::2] for one in pairs)
    remarks = [
        f"{name} {own[name][-1]!r} of its service is left out"
        for name in ("User", "Group", "EnvironmentFile", "Nice", "MemoryMax")
        if own.get(name)
    ]
    limit = _span(own, "TimeoutStartSec") or LONGEST_RUN
    return found, min(limit, LONGEST_RUN), tuple(remarks)


def entries_of(
    units: Sequence[tuple[Path, str, str | None]], zone: str
) -> Iterator[Entry | Refused]:
    """Yield the entries of timers: their files, their texts and those of their services."""
    for file, timer, service in units:
        yield entry_of(file, unit_of(timer), None if service is None else unit_of(service), zone)
