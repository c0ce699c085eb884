"""Rules in English: `daily at 9`, `every monday`, `9:00`, `last friday of the month`."""

import re
from collections.abc import Iterator, Sequence

from cron.dialects.fields import is_rule, unwrapped
from cron.fields import MONTH, NAMES, WEEKDAY

_TIME = (
    r"(?:(\d{1,2})(?:[:.h](\d{2}))?(?: ?(am|pm|a\.m\.?|p\.m\.?)|( ?o'clock|h\b))?|(noon|midnight))"
)
_EACH_TIME = re.compile(_TIME, re.ASCII)
_TIMES = rf"(?P<at>at |@ ?)?(?P<times>{_TIME}(?:(?:,? and |, ?)(?:at )?{_TIME})*)"
_BEHIND = re.compile(rf"(?P<days>.*?)(?: |^){_TIMES}", re.ASCII)
_BEFORE = re.compile(rf"{_TIMES} (?P<days>\D.*)", re.ASCII)
DAY = rf"(?:{NAMES[WEEKDAY]})"
_AND = r"(?: ?, ?(?:and )?| and )(?:on )?(?:the )?"
DAYS = rf"{DAY}(?:(?: ?- ?| to | through |{_AND}){DAY})*"
OF_MONTH = r" (?:of|in) (?:each|every|the|a) month"
ORDINAL = r"(?:first|second|third|fourth|fifth|last|1st|2nd|3rd|4th|5th)"
_NTH = re.compile(rf"({ORDINAL}) ({DAY})(?:{OF_MONTH})")
_OUTER = re.compile(rf"(first|1st|last) ({DAY})")
_WORKING = re.compile(rf"(first|1st|last) (?:week|working |work|business )day(?:{OF_MONTH})?")
_DATE = r"(?:first|last|\d{1,2})(?:st|nd|rd|th)?(?: day)?"
_DATES = re.compile(rf"({_DATE}(?:{_AND}{_DATE})*){OF_MONTH}", re.ASCII)
_NTH_DATE = r"\d{1,2}(?:st|nd|rd|th)"
_NTH_DATES = re.compile(rf"({_NTH_DATE}(?:{_AND}{_NTH_DATE})*)", re.ASCII)
_MONTHS = rf"(?P<months>(?:{NAMES[MONTH]})(?:{_AND}(?:{NAMES[MONTH]}))*)"
_YEARLY = re.compile(rf"(?P<dates>{_DATE}(?:{_AND}{_DATE})*)(?: of)? {_MONTHS}", re.ASCII)
_MONTH_FIRST = re.compile(rf"{_MONTHS} (?:the )?(?P<dates>\d{{1,2}}(?:st|nd|rd|th)?)", re.ASCII)
_NUMBERS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_PLAIN = {
    **dict.fromkeys(("", "daily", "every day", "each day", "everyday"), "* * *"),
    **dict.fromkeys(("weekdays", "weekday", "working days", "workdays"), "* * mon-fri"),
    **dict.fromkeys(("weekends", "weekend"), "* * sat,sun"),
}
# A rule needs a day; of a week, a month or a year this one is proposed.
_FIRST_DAYS = {
    **dict.fromkeys(("weekly", "every week"), "* * mon"),
    **dict.fromkeys(("monthly", "every month", "each month"), "1 * *"),
    **dict.fromkeys(("yearly", "annually", "every year", "each year"), "1 1 *"),
}
SHORT = {
    "every minute": "* * * * *", "each minute": "* * * * *", "@every_minute": "* * * * *",
    "every hour": "0 * * * *", "each hour": "0 * * * *", "hourly": "0 * * * *",
}  # fmt: skip


def of_speech(text: str) -> str | None:
    """Return what to write for a rule in English and lower case; None if it is none."""
    rule = SHORT.get(text) or _rule(text)
    if rule is None:
        return None
    what = "is a time of day" if _EACH_TIME.fullmatch(text) else "is not a cron rule"
    return f"{what}; write '{rule}'"


def _rule(text: str) -> str | None:
    for times, days in parted_phrase(text):
        fields = _FIRST_DAYS.get(days) or day_fields(days)
        if fields is not None and (text or times):
            return rule_at(times or (0,), fields)
    return None


def parted_phrase(text: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the ways to part a phrase: its times, in minutes of the day, and its days.

    None for a phrase such as `at 7 and 9 pm`, whose 7 may be in the morning or in the evening.
    """
    for pattern in (_BEHIND, _BEFORE):
        found = pattern.fullmatch(text)
        # A number alone is no time.
        if found is None or not (found["at"] or _is_clock(found["times"])):
            continue
        read = [*_EACH_TIME.finditer(found["times"])]
        if _is_mixed(read):
            return
        times = [_minutes(one) for one in read]
        if None not in times:
            yield tuple(one for one in times if one is not None), found["days"].strip(" ,")
    if text:
        yield (), text


def _is_clock(times: str) -> bool:
    return any(any(one.groups()[1:]) for one in _EACH_TIME.finditer(times))


def _is_mixed(times: Sequence[re.Match[str]]) -> bool:
    """Return whether one time has am or pm, and another of an hour from 1 to 12 has none."""
    return any(one[3] for one in times) and any(
        one[1] and not one[3] and 1 <= int(one[1]) <= 12 for one in times
    )


def _minutes(found: re.Match[str]) -> int | None:
    if found[5]:
        return 720 if found[5] == "noon" else 0
    hour, minute = int(found[1]), int(found[2] or 0)
    if found[3]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found[3].startswith("p") else 0)
    return hour * 60 + minute if hour < 24 and minute < 60 else None


def rule_at(times: Sequence[int], fields: str) -> str | None:
    """Return the cron rule of these times on the days of three fields; None if no rule has both."""
    minutes = {time % 60 for time in times}
    hours = ",".join(str(time // 60) for time in sorted(set(times)))
    return f"{minutes.pop()} {hours} {fields}" if len(minutes) == 1 else None


def day_fields(text: str) -> str | None:
    """Return the three fields of days that a phrase names."""
    bare = re.sub(r"^(?:on |every |each |the )+", "", text)
    fields = _PLAIN.get(text) or _PLAIN.get(bare) or _fields(bare)
    return fields if fields is not None and is_rule(["0", "0", *fields.lower().split()]) else None


def _fields(text: str) -> str | None:
    if re.fullmatch(DAYS, text):
        return _weekdays(text)
    if (nth := _NTH.fullmatch(text) or _OUTER.fullmatch(text)) is not None:
        number = _NUMBERS.get(nth[1]) or nth[1][0]
        return f"* * {nth[2][:3]}" + ("L" if nth[1] == "last" else f"#{number}")
    if (working := _WORKING.fullmatch(text)) is not None:
        return f"{'LW' if working[1] == 'last' else '1W'} * *"
    if (dates := _DATES.fullmatch(text) or _NTH_DATES.fullmatch(text)) is not None:
        return f"{_dates(dates[1])} * *"
    yearly = _YEARLY.fullmatch(text) or _MONTH_FIRST.fullmatch(text)
    if yearly is None:
        return None
    months = re.findall(NAMES[MONTH], yearly["months"])
    return f"{_dates(yearly['dates'])} {','.join(one[:3] for one in months)} *"


def _dates(text: str) -> str:
    named = re.findall(r"first|last|\d+", text)
    return ",".join({"first": "1", "last": "L"}.get(one, one.lstrip("0")) for one in named)


def _weekdays(text: str) -> str:
    dashed = re.sub(r" ?- ?| to | through ", "-", text)
    items = re.sub(_AND, ",", dashed)
    return f"* * {unwrapped(WEEKDAY, re.sub(r'[a-z]+', lambda one: one[0][:3], items))}"
