"""Calendar events of systemd (OnCalendar): `Mon..Fri *-*-* 09:00`."""

import json
import re

from cron.dialects.fields import both_days, unwrapped, with_ranges, with_short_names
from cron.fields import DAY, HOUR, MINUTE, MONTH, WEEKDAY
from cron.zone import canonical_name

_WORDS = {
    "minutely": "* * * * *", "hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * mon",
    "monthly": "0 0 1 * *", "quarterly": "0 0 1 1,4,7,10 *", "semiannually": "0 0 1 1,7 *",
    "yearly": "0 0 1 1 *", "annually": "0 0 1 1 *",
}  # fmt: skip
_PART = r"[*\d./,]+"
_EVENT = re.compile(
    rf"(?:([a-z][a-z,.-]*) )?"
    rf"(?:(?:({_PART})-)?({_PART})(-|~)({_PART})(?: |$))?"
    rf"(?:({_PART}):({_PART})(?::0?0)?)?"
    r"(?: ?(utc|[a-z]+/[a-z_/+-]+))?"
)


def of_systemd(text: str) -> str | None:
    """Return what to write for a calendar event in lower case; None if it is none."""
    rule, zone = _WORDS.get(text), None
    if rule is None:
        rule, zone = _read(text)
    if rule is None:
        return None
    advice = f"'{rule}'"
    if zone is not None:
        advice = json.dumps({"cron_rule": rule, "timezone": canonical_name(zone)})
    return f"is a calendar event of systemd; write {advice}"


def _read(text: str) -> tuple[str | None, str | None]:
    found = _EVENT.fullmatch(text)
    if found is None or (found[3] is None and found[6] is None):
        return None, None
    weekday, year, month, sign, day, hour, minute, zone = found.groups()
    if year not in {None, "*"}:
        return None, None
    days = _from_end(day) if sign == "~" else _items(day or "*")
    weekdays = with_short_names(WEEKDAY, (weekday or "*").replace("..", "-"))
    fields = [
        with_ranges(MINUTE, _items(minute or "0")),
        with_ranges(HOUR, _items(hour or "0")),
        with_ranges(DAY, days),
        with_ranges(MONTH, _items(month or "*")),
        unwrapped(WEEKDAY, weekdays),
    ]
    return both_days(fields), zone


def _items(text: str) -> str:
    """Return numbers without zeros in front, and `1..5` as a range."""
    return re.sub(r"\b0+(?=\d)", "", text.replace("..", "-"))


def _from_end(day: str) -> str:
    number = int(day) if day.isdigit() else 0
    return "L" if number == 1 else f"L-{number - 1}"
