"""Rules of six and seven fields (Quartz, Spring, AWS), and rules with a command behind them."""

import re

from cron.dialects.fields import any_day, is_rule, unwrapped, with_ranges, with_short_names
from cron.fields import FIELDS, WEEKDAYS
from cron.intervals import instead_of_a_rule
from cron.signs import with_capitals

_ONCE = re.compile(r"at\((\d{4}-\d\d-\d\dt\d\d:\d\d(?::\d\d)?)\)", re.ASCII)
_AWS = re.compile(r"cron\(([^()]*)\)")
# A number of a weekday: not the step behind it, nor the n of `#`.
_WEEKDAY_NUMBER = re.compile(r"(?<![#/\w])([1-7])(?=$|[-,l#/])")
_YEARS = re.compile(r"[*?]|(?:19|20|21)\d\d\S*")
_EACH_SECOND = re.compile(r"(?:\*|0|0-59)/(\d{1,2})|\*")


def of_quartz(text: str) -> str | None:
    """Return what to write for a rule of AWS, Quartz or Spring, or one with a command."""
    once = _ONCE.fullmatch(text)
    if once is not None:
        return f'is a date of AWS; write {{"due_date": "{once[1].upper()}"}} instead of a cron rule'
    aws = _AWS.fullmatch(text)
    if aws is not None:
        return _of_aws(aws[1].split())
    fields = text.split()
    if len(fields) == 6 and "?" in {fields[2], fields[4]}:
        return _of_aws(fields)
    if len(fields) in {6, 7} and "?" in fields[3:6]:
        return _with_seconds(fields, _renumbered(fields[1:6]), "is a rule of Quartz, and its ")
    return _too_long(fields) if len(fields) > 5 else None


def _of_aws(fields: list[str]) -> str:
    rule = _renumbered(fields[:5]) if len(fields) == 6 else None
    if rule is None:
        return "is a rule of AWS; write only its first five fields, * for ?, and mon to sun"
    return f"is a rule of AWS; write '{rule}'{_without_years(fields[5])}"


def _too_long(fields: list[str]) -> str | None:
    if fields == ["*"] * 6:
        return (
            "has 6 fields, and seconds are not supported; write '* * * * *' for each minute, "
            'or {"every": "PT1S"} for each second'
        )
    return _of_six_or_seven(fields) or _with_a_command(fields)


def _of_six_or_seven(fields: list[str]) -> str | None:
    """Return what to write for five fields behind a second, before a year, or both."""
    after_second = _plain(fields[1:6]) if _is_second(fields[0]) else None
    if len(fields) == 7 and after_second and _YEARS.fullmatch(fields[6]):
        return _with_seconds(fields, after_second, "has 7 fields, and ")
    if len(fields) != 6:
        return None
    has_year = _YEARS.fullmatch(fields[5]) is not None and is_rule(fields[:5])
    if not has_year:
        return _with_seconds(fields, after_second, "has 6 fields, and ")
    before_year = " ".join(map(with_capitals, FIELDS, fields))
    if after_second is None:
        return f"has 6 fields; write '{before_year}'{_without_years(fields[5])}"
    if not fields[0].isdigit():
        return _with_seconds(fields, after_second, "has 6 fields, and ")
    return (
        "has 6 fields, and seconds and years are not supported; "
        f"write '{after_second}' if the first is the second, or '{before_year}' if the last is "
        "the year"
    )


def _with_a_command(fields: list[str]) -> str | None:
    if not re.search("[a-z]", fields[5]) or not is_rule(fields[:5]):
        return None
    rule = " ".join(map(with_capitals, FIELDS, fields))
    return f"holds a command; write '{rule}', and make the command a step"


def _is_second(text: str) -> bool:
    return text.isdigit() or _EACH_SECOND.fullmatch(text) is not None


def _with_seconds(fields: list[str], rule: str | None, what: str) -> str | None:
    if rule is None:
        return None
    each = _EACH_SECOND.fullmatch(fields[0])
    if each is not None and rule == "* * * * *":
        return instead_of_a_rule(f"{what}seconds are not supported", int(each[1] or 1))
    years = _without_years(fields[6]) if len(fields) == 7 else ""
    return f"{what}seconds are not supported; write '{rule}'{years}"


def _without_years(years: str) -> str:
    return "" if years in {"*", "?"} else f"; the years {years} are not supported"


def _renumbered(fields: list[str]) -> str | None:
    """Return a rule of AWS or Quartz, whose Sunday is 1, as ours; None if it cannot be."""
    if len(fields) != len(FIELDS):
        return None
    *others, weekdays = fields
    named = _WEEKDAY_NUMBER.sub(lambda found: WEEKDAYS[int(found[1]) - 1], weekdays)
    # Alone, `L` is their Saturday.
    return _plain([*others, "sat" if named == "l" else named])


def _plain(fields: list[str]) -> str | None:
    """Return five fields with short names and ranges as a rule; None if they are none."""
    if len(fields) != len(FIELDS):
        return None
    rule = [
        unwrapped(field, with_ranges(field, with_short_names(field, any_day(field, one))))
        for field, one in zip(FIELDS, fields, strict=True)
    ]
    if not is_rule(rule):
        return None
    return " ".join(with_capitals(field, one) for field, one in zip(FIELDS, rule, strict=True))
