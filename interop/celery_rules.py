"""Celery's schedules as rules of an action, exactly or not at all."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from celery.schedules import ParseException, crontab

from cron import CronSchedule, InvalidRule
from cron.fields import DAY, HOUR, MINUTE, MONTH, WEEKDAY, WEEKDAYS, Field
from cron.recurrence import MOST_TIMES
from interop.cron_text import RULES, all_of, ranges_of, values_of
from interop.entries import CannotMove

# Celery's names of the fields, in the order of a rule.
NAMES: Mapping[str, Field] = {
    "minute": MINUTE,
    "hour": HOUR,
    "day_of_month": DAY,
    "month_of_year": MONTH,
    "day_of_week": WEEKDAY,
}
LONGEST_FIELD = 1_000
# A step beyond the field selects its first value alone; a field that begins with `*` must match
# beside the other field of days.
FIRST_DAY, SUNDAY = "*/31", "*/7"


@dataclass(frozen=True, slots=True)
class Crontab:
    """A crontab of Celery: its five fields as texts, and its zone."""

    fields: tuple[str, ...]
    zone: str

    @classmethod
    def read(cls, written: Mapping[str, object], zone: str) -> "Crontab":
        """Return the crontab of five named fields; raises CannotMove."""
        return cls(tuple(_text(name, written.get(name, "*")) for name in NAMES), zone)

    @property
    def when(self) -> dict[str, Any]:
        """The rule of an action with exactly the days and times of the crontab.

        It is a recurrence rule if a day of the month and a weekday must both match. Raises
        CannotMove.
        """
        try:
            return {"cron_rule": self.rule, "timezone": self.zone}
        except BothMustMatch:
            with suppress(CannotMove):
                return self.with_days(_sets(self.fields)[2])
            raise

    def with_days(self, days: set[int]) -> dict[str, Any]:
        """Return the recurrence rule of these days of the month at the crontab's other fields.

        A day below 0 counts from the month's end. Raises CannotMove for too many times of the day.
        """
        minutes, hours, _, months, weekdays = _sets(self.fields)
        times = [f"{hour:02}:{minute:02}" for hour in sorted(hours) for minute in sorted(minutes)]
        if len(times) > MOST_TIMES:
            why = f"a day and a weekday must both match, over {MOST_TIMES} times a day"
            raise CannotMove(why, RULES)
        parts = ["FREQ=DAILY"]
        parts += [f"BYMONTH={_numbers(months)}"] if months != all_of(MONTH) else []
        parts += [f"BYMONTHDAY={_numbers(days)}"]
        parts += [f"BYDAY={_names(weekdays)}"] if weekdays != all_of(WEEKDAY) else []
        at = times[0] if len(times) == 1 else times
        return {"rrule": ";".join(parts), "at": at, "timezone": self.zone}

    @property
    def rule(self) -> str:
        """The cron rule with exactly the days and times of the crontab; raises CannotMove."""
        minute, hour, day, month, weekday = _sets(self.fields)
        texts = dict(zip(NAMES, self.fields, strict=True))
        rule = [
            _field(MINUTE, minute, texts["minute"]),
            _field(HOUR, hour, texts["hour"]),
            *_days((day, texts["day_of_month"]), (weekday, texts["day_of_week"])),
        ]
        rule.insert(3, _field(MONTH, month, texts["month_of_year"]))
        text = " ".join(rule)
        try:
            CronSchedule(text, self.zone)
        except InvalidRule as error:
            raise CannotMove(str(error), "correct it in the schedule it comes from") from None
        return text


class BothMustMatch(CannotMove):
    """A day of the month and a weekday must both match, which no cron rule can say."""


def _numbers(values: set[int]) -> str:
    return ",".join(map(str, sorted(values)))


def _names(weekdays: set[int]) -> str:
    return ",".join(WEEKDAYS[day][:2].upper() for day in sorted(weekdays))


def engine_of(fields: Sequence[str]) -> crontab:
    """Return Celery's own schedule of these fields; raises CannotMove."""
    try:
        return crontab(**dict(zip(NAMES, fields, strict=True)))
    except (ValueError, TypeError, ParseException) as error:
        shown = " ".join(fields)
        why = f"Celery refuses its crontab {shown!r}: {str(error).strip()}"
        raise CannotMove(why, "correct it in the schedule it comes from") from None


def _text(name: str, value: object) -> str:
    if isinstance(value, list) and value and all(type(one) is int for one in value):
        value = ",".join(map(str, value))
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise CannotMove(f"{name} {value!r} is neither text nor number", "write a text")
    text = str(value).strip()
    if len(text) > LONGEST_FIELD:
        raise CannotMove(f"{name} has {len(text)} characters", f"write at most {LONGEST_FIELD}")
    return text


def _sets(fields: Sequence[str]) -> list[set[int]]:
    engine = engine_of(fields)
    return [set(getattr(engine, name)) for name in NAMES]


def _days(day: tuple[set[int], str], weekday: tuple[set[int], str]) -> tuple[str, str]:
    """Return the fields day of month and day of week of a rule for which both must match.

    Celery requires both; cron rules do so only if one of them begins with `*`.
    """
    weeks = weeks_of(day[0])
    if weeks and weekday[0] != all_of(WEEKDAY):
        signs = (f"{WEEKDAYS[one]}#{week}" for week in weeks for one in sorted(weekday[0]))
        return "*", ",".join(signs)
    days = "*" if day[0] == all_of(DAY) else _field(DAY, *day)
    weekdays = "*" if weekday[0] == all_of(WEEKDAY) else _field(WEEKDAY, *weekday)
    if days.startswith("*") or weekdays.startswith("*"):
        return days, weekdays
    if 1 in day[0]:
        return ",".join([FIRST_DAY, *_rest(day[0] - {1})]), weekdays
    if 0 in weekday[0]:
        return days, ",".join([SUNDAY, *_rest(weekday[0] - {0})])
    raise BothMustMatch(
        f"day_of_month {days} and day_of_week {weekdays} must both match, and a cron rule would run"
        " when one of them does",
        f"write a recurrence rule with at most {MOST_TIMES} times of the day",
    )


def weeks_of(days: set[int]) -> list[int]:
    """Return which weeks of a month these days are: the 1st has days 1 to 7; none for others."""
    weeks = [week for week in range(1, 6) if 7 * week in days or (week == 5 and 29 in days)]
    whole = {day for week in weeks for day in range(7 * week - 6, min(7 * week, 31) + 1)}
    return weeks if whole == days and len(weeks) < 5 else []


def _rest(values: set[int]) -> list[str]:
    return [ranges_of(values)] if values else []


def _field(field: Field, values: set[int], text: str) -> str:
    """Return a field with these values: as it was written, if that means the same here."""
    if values_of(field, text.lower()) == values:
        return text.lower()
    if values == all_of(field):
        return "*"
    step = _step(field, values)
    return f"*/{step}" if step else ranges_of(values)


def _step(field: Field, values: set[int]) -> int | None:
    """Return the step n for which `*/n` has these values, or None."""
    first_two = sorted(values)[:2]
    if len(first_two) < 2:
        return None
    step = first_two[1] - first_two[0]
    return step if values_of(field, f"*/{step}") == values else None
