"""Texts that write an interval: AWS's rates, Go's durations, ISO 8601, English, seconds."""

import re

from cron.intervals import UNIT_S, instead_of_a_rule

_RATE = re.compile(r"rate\(\s*(\d{1,6})\s+(minute|hour|day)s?\s*\)", re.ASCII)
_GO = re.compile(r"@every\s+((?:\d{1,6}(?:\.\d{1,3})?[hms])+)", re.ASCII)
_ISO = re.compile(
    r"(?:r-?\d*/)?(?:\d{4}-\S+/)?p(?:(\d{1,5})w)?(?:(\d{1,5})d)?"
    r"(?:t(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?)?",
    re.ASCII,
)
_ISO_UNITS = ("week", "day", "hour", "minute", "second")
_SECONDS = re.compile(r"([1-9]\d{0,8})(?:\.0+)?", re.ASCII)
_WORDS = {
    "s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour",
    "d": "day", "w": "week", **{unit: unit for unit in UNIT_S},
}  # fmt: skip
_UNIT = "|".join(sorted(_WORDS, key=len, reverse=True))
_SPOKEN = re.compile(
    rf"(@?every |each )?(?:(\d{{1,6}}) ?|(other |second )|(an? |one ))({_UNIT})s?", re.ASCII
)


def of_span(text: str) -> str | None:
    """Return what to write for an interval, in lower case; None if it is none."""
    for what, read in _READERS:
        seconds = read(text)
        if seconds is not None:
            return instead_of_a_rule(what, seconds)
    return None


def _rate(text: str) -> int | None:
    found = _RATE.fullmatch(text)
    return None if found is None else int(found[1]) * UNIT_S[found[2]]


def _go(text: str) -> int | None:
    found = _GO.fullmatch(text)
    if found is None:
        return None
    parts = re.findall(r"([\d.]+)([hms])", found[1])
    seconds = sum((float(count) * UNIT_S[_WORDS[unit]] for count, unit in parts), 0.0)
    return int(seconds) if seconds.is_integer() else None


def _iso(text: str) -> int | None:
    found = _ISO.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    parts = zip(found.groups(), _ISO_UNITS, strict=True)
    return sum(int(count or 0) * UNIT_S[unit] for count, unit in parts)


def _plain_seconds(text: str) -> int | None:
    found = _SECONDS.fullmatch(text)
    # A small number may be a minute, whose other fields are lacking.
    return int(found[1]) if found is not None and int(found[1]) >= UNIT_S["minute"] else None


def _spoken(text: str) -> int | None:
    found = spoken_span(text)
    return None if found is None else found[0] * UNIT_S[found[1]]


def spoken_span(text: str) -> tuple[int, str] | None:
    """Return the count and the unit of a span in words, such as 2 and `hour`."""
    found = _SPOKEN.fullmatch(text)
    if found is None:
        return None
    return int(found[2]) if found[2] else 2 if found[3] else 1, _WORDS[found[5]]


_READERS = (
    ("is a rate of AWS", _rate),
    ("is an interval of Go", _go),
    ("is an ISO 8601 duration", _iso),
    ("is a number of seconds", _plain_seconds),
    ("is an interval in words", _spoken),
)
