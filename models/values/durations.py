"""ISO 8601 durations: exact spans.

pydantic's parser is not used: it reads P1M as 30 days, P1Y as 365, and "00:10:00" as a span.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TypeGuard

_NUMBER = "[0-9]{1,9}"
_PATTERN = re.compile(
    rf"P(?:(?P<years>{_NUMBER})Y)?(?:(?P<months>{_NUMBER})M)?(?:(?P<weeks>{_NUMBER})W)?"
    rf"(?:(?P<days>{_NUMBER})D)?"
    rf"(?:T(?=[0-9])(?:(?P<hours>{_NUMBER})H)?(?:(?P<minutes>{_NUMBER})M)?"
    rf"(?:(?P<seconds>{_NUMBER})S)?)?",
    re.ASCII,
)
SECOND = timedelta(seconds=1)
LONGEST = timedelta(days=36_600)
EXAMPLES = 'write an ISO 8601 duration such as "PT5M", "PT4H" or "P1D"'
SHORT = {"day": "d", "hour": "h", "minute": "min", "second": "s"}
_MISTAKES = {
    "-": f"a duration cannot be negative; {EXAMPLES}",
    "[0-9][.,][0-9]": 'write whole numbers: "PT90M" rather than "PT1.5H"',
    "^P[0-9WD]+[0-9]+[HMS0-9]*$": 'hours, minutes and seconds follow a T: "P7DT30S"',
    ":": 'write hours, minutes and seconds as "PT1H30M15S"',
}


def parse_span(
    value: object,
    *,
    least: timedelta = SECOND,
    most: timedelta = LONGEST,
    seconds_allowed: bool = False,
) -> timedelta:
    """Return the exact span that `value` writes, in [least, most] and whole seconds.

    Only weeks, days (86,400 s) and smaller units. `seconds_allowed` also accepts a whole number of
    seconds. Raises ValueError with what to write instead.
    """
    span = _seconds(value) if seconds_allowed and _is_number(value) else _exact(value)
    if span < least:
        raise ValueError(f'is too short; write "{format_span(least)}" or more')
    if span > most:
        raise ValueError(f'is too long; write "{format_span(most)}" or less')
    return span


def parse_delay(value: object) -> timedelta:
    """Return the delay of an event; raises ValueError as `parse_span`, also for a delay of zero."""
    delay = parse_span(value, least=timedelta(0))
    if not delay:
        raise ValueError('is not a delay; write {"on": …} for an action at the event itself')
    return delay


def format_span(span: timedelta) -> str:
    """Return `span` in canonical ISO 8601, of days, hours, minutes and seconds (`P7DT30S`)."""
    day, *clock = (f"{n}{unit[0].upper()}" if n else "" for unit, n in _counts(span))
    text = day + ("T" + "".join(clock) if any(clock) else "")
    return f"P{text}" if text else "PT0S"


def span_in_words(span: timedelta) -> str:
    """Return a span in words: `1 hour 30 minutes`."""
    return " ".join(f"{n} {unit}{'s' if n > 1 else ''}" for unit, n in _counts(span) if n)


def lasting(span: timedelta) -> str:
    """Return a duration in its two largest units: `2 min 5 s`, `3 h`, `0 s`."""
    counts = [*_counts(timedelta(seconds=round(max(0.0, span.total_seconds()))))]
    first = next((place for place, (_, n) in enumerate(counts) if n), len(counts))
    shown = (f"{n} {SHORT[unit]}" for unit, n in counts[first : first + 2] if n)
    return " ".join(shown) or "0 s"


def _counts(span: timedelta) -> Iterator[tuple[str, int]]:
    """Yield the units of a span, from days on, with how many of each it has."""
    hours, seconds = divmod(span.seconds, 3600)
    yield from (("day", span.days), ("hour", hours))
    yield from (("minute", seconds // 60), ("second", seconds % 60))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _seconds(value: object) -> timedelta:
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        if abs(value) > LONGEST.total_seconds():
            raise ValueError(f'is too long; write "{format_span(LONGEST)}" or less')
        return timedelta(seconds=int(value))
    raise ValueError("write whole seconds, such as 90, or an ISO 8601 duration such as PT90S")


def _exact(value: object) -> timedelta:
    match = _PATTERN.fullmatch(value) if isinstance(value, str) else None
    if match is None or not any(match.groups()):
        raise ValueError(_why_not(value if isinstance(value, str) else ""))
    parts = {name: int(count or 0) for name, count in match.groupdict().items()}
    years, months = parts.pop("years"), parts.pop("months")
    try:
        span = timedelta(**parts)
    except OverflowError:
        raise ValueError(f'is too long; write "{format_span(LONGEST)}" or less') from None
    if years or months:
        days = 365 * years + 30 * months + span.days
        raise ValueError(f'months and years have no fixed length; write days, such as "P{days}D"')
    return span


def _why_not(text: str) -> str:
    found = (remedy for pattern, remedy in _MISTAKES.items() if re.search(pattern, text))
    return next(found, f"is not a duration; {EXAMPLES}")
