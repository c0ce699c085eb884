"""Rules in English: `daily at 9`, `every monday`, `9:00`, `last friday of the month`."""

import re

from cron.dialects.fields import is_rule, unwrapped
from cron.fields import WEEKDAY

_TIME = (
    r"(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d{2}))?(?: ?(?P<half>am|pm|a\.m\.|p\.m\.)| ?o'clock|h)?"
    r"|(?P<word>noon|midnight)"
)
_BEHIND = re.compile(rf"(?P<days>.*?)(?: |^)(?P<at>at |@ ?)?(?:{_TIME})", re.ASCII)
_BEFORE = re.compile(rf"(?P<at>at )?(?:{_TIME}) (?P<days>\D.*)", re.ASCII)
_DAY = r"(?:sun|mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?)(?:day)?s?"
_DAYS = re.compile(rf"{_DAY}(?:(?: ?[-,] ?(?:and )?| and | to | through ){_DAY})*")
_OF_MONTH = r" of (?:each|every|the|a) month"
_ORDINAL = r"first|second|third|fourth|fifth|last|1st|2nd|3rd|4th|5th"
_NTH = re.compile(rf"({_ORDINAL}) ({_DAY}){_OF_MONTH}")
_DATE = re.compile(rf"(?:(first|last|\d{{1,2}})(?:st|nd|rd|th)?)(?: day)?{_OF_MONTH}", re.ASCII)
_NUMBERS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_PLAIN = {
    **dict.fromkeys(("", "daily", "every day", "each day", "everyday"), "* * *"),
    **dict.fromkeys(("weekdays", "weekday", "working days", "workdays"), "* * mon-fri"),
    **dict.fromkeys(("weekends", "weekend"), "* * sat,sun"),
    **dict.fromkeys(("weekly", "every week"), "* * mon"),
    **dict.fromkeys(("monthly", "every month", "each month"), "1 * *"),
    **dict.fromkeys(("yearly", "annually", "every year", "each year"), "1 1 *"),
}
_SHORT = {
    "every minute": "* * * * *", "each minute": "* * * * *", "@every_minute": "* * * * *",
    "every hour": "0 * * * *", "each hour": "0 * * * *",
}  # fmt: skip


def of_speech(text: str) -> str | None:
    """Return what to write for a rule in English and lower case; None if it is none."""
    rule = _SHORT.get(text) or _rule(text)
    if rule is None:
        return None
    what = "is a time of day" if re.fullmatch(_TIME, text) else "is not a cron rule"
    return f"{what}; write '{rule}'"


def _rule(text: str) -> str | None:
    for pattern in (_BEHIND, _BEFORE):
        found = pattern.fullmatch(text)
        if found is not None and _is_time(found, text):
            days = _days(found["days"].strip(" ,"))
            time = _time(found)
            if days is not None and time is not None:
                return f"{time} {days}"
    days = _days(text) if text else None
    return None if days is None else f"0 0 {days}"


def _is_time(found: re.Match[str], text: str) -> bool:
    """Return whether a number is meant as a time: 15 alone is none."""
    return bool(found["at"] or found["minute"] or found["half"] or found["word"]) or bool(
        re.search(r"\dh\b|o'clock", text)
    )


def _time(found: re.Match[str]) -> str | None:
    """Return the minute and the hour."""
    if found["word"]:
        return "0 12" if found["word"] == "noon" else "0 0"
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"].startswith("p") else 0)
    return f"{minute} {hour}" if hour < 24 and minute < 60 else None


def _days(text: str) -> str | None:
    """Return the three fields of days."""
    if text in _PLAIN:
        return _PLAIN[text]
    bare = re.sub(r"^(?:on |every |each |the )+", "", text)
    if bare in _PLAIN:
        return _PLAIN[bare]
    if _DAYS.fullmatch(bare):
        return _weekdays(bare)
    if (nth := _NTH.fullmatch(bare)) is not None:
        day = nth[2][:3]
        number = _NUMBERS.get(nth[1]) or nth[1][0]
        return f"* * {day}L" if nth[1] == "last" else f"* * {day}#{number}"
    date = _DATE.fullmatch(bare)
    if date is None:
        return None
    day = {"first": "1", "last": "L"}.get(date[1], date[1].lstrip("0"))
    return f"{day} * *" if is_rule(["0", "0", day.lower(), "*", "*"]) else None


def _weekdays(text: str) -> str:
    dashed = re.sub(r" ?- ?| to | through ", "-", text)
    items = re.sub(r" ?, ?(?:and )?| and ", ",", dashed)
    return f"* * {unwrapped(WEEKDAY, re.sub(r'[a-z]+', lambda one: one[0][:3], items))}"
