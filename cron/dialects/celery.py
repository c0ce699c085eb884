"""Schedules of Celery as Python writes them: `crontab(minute=0)`, `timedelta(minutes=5)`."""

import ast
import re

from cron.dialects.fields import both_days, unwrapped, with_short_names
from cron.fields import FIELDS
from cron.intervals import UNIT_S, instead_of_a_rule

_CALL = re.compile(r"(?:celery\.schedules\.)?crontab(\(.*\))")
_SPAN = re.compile(r"(?:datetime\.)?timedelta(\(.*\))|(?:celery\.schedules\.)?schedule(\(.*\))")
_REPR = re.compile(r"<?crontab: (\S+ \S+ \S+ \S+ \S+) \((m/h/d/dm/my|m/h/dm/my/d)\)>?")
_NAMES = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
# Celery's order of unnamed arguments, and what older releases show.
_ORDER = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")


def of_celery(text: str) -> str | None:
    """Return what to write for a schedule of Celery in lower case; None if it is none."""
    shown = _REPR.fullmatch(text)
    if shown is not None:
        order = _ORDER if shown[2].startswith("m/h/d/") else _NAMES
        rule = _rule(dict(zip(order, shown[1].split(), strict=True)))
    elif (call := _CALL.fullmatch(text)) is not None:
        rule = _rule(_arguments(call[1], _ORDER))
    else:
        return _of_span(text)
    if rule is None:
        return "is a schedule of Celery; write its five fields, such as '0 9 * * 1'"
    return f"is a schedule of Celery; write '{rule}'"


def _of_span(text: str) -> str | None:
    found = _SPAN.fullmatch(text)
    if found is None:
        return None
    first = "days" if found[1] else "seconds"
    given = _arguments(found[1] or found[2], (first, "seconds"))
    units = {**{f"{unit}s": size for unit, size in UNIT_S.items()}, "run_every": 1}
    if not given or not all(name in units and one.isdigit() for name, one in given.items()):
        return None
    seconds = sum(int(value) * units[name] for name, value in given.items())
    return instead_of_a_rule("is an interval of Celery", seconds)


def _arguments(call: str, order: tuple[str, ...]) -> dict[str, str] | None:
    """Return the arguments of a call that are literals, as texts; None for another call."""
    try:
        node = ast.parse(f"f{call}", mode="eval").body
        if not isinstance(node, ast.Call):
            return None
        values = [*zip(order, node.args, strict=False)]
        values += [(one.arg or "", one.value) for one in node.keywords]
        return {name: _text(ast.literal_eval(value)) for name, value in values}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _text(value: object) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(str(one) for one in value)
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    return str(number).replace(" ", "")


def _rule(given: dict[str, str] | None) -> str | None:
    if given is None or not set(given) <= set(_NAMES):
        return None
    fields = [
        unwrapped(field, with_short_names(field, given.get(name, "*")))
        for field, name in zip(FIELDS, _NAMES, strict=True)
    ]
    return both_days(fields)
