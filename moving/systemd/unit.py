"""Unit files of systemd as data: sections, settings, and what their texts mean."""

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from moving.entries import CannotMove

# A hundred years, longer than any limit.
MOST_SECONDS = 3_153_600_000
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) *([A-Za-zµμ]*)", re.ASCII)
_UNITS = {
    **dict.fromkeys(("ns", "nsec"), 1e-9),
    **dict.fromkeys(("us", "usec", "µs", "μs"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3_600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604_800.0),
    **dict.fromkeys(("M", "month", "months"), 2_629_800.0),
    **dict.fromkeys(("y", "year", "years"), 31_557_600.0),
}
# Escapes that systemd reads in another way than a shell, which `shlex` follows.
_ESCAPE = re.compile(r"""\\[^\\"]|'.*\\""")

# What systemd replaces after each sign.
_MEANING = {
    "%": re.compile(r"%"),
    "$": re.compile(r"\$\{\w+\}|(?<!\S)\$\w+(?!\S)", re.ASCII),
}

# Values that switch a setting on.
ON = frozenset({"1", "true", "yes", "on"})

Section = Mapping[str, Sequence[str]]
Unit = Mapping[str, Section]


def unit_of(text: str) -> dict[str, dict[str, list[str]]]:
    """Return the values of a unit file by section and key; an empty value forgets those before."""
    found: dict[str, dict[str, list[str]]] = {}
    section = ""
    for line in _whole_lines(text):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif line and line[0] not in "#;" and "=" in line:
            key, _, value = (part.strip() for part in line.partition("="))
            values = found.setdefault(section, {}).setdefault(key, [])
            values.append(value) if value else values.clear()
    return found


def _whole_lines(text: str) -> Iterator[str]:
    """Yield the lines, continued ones joined: a comment among them is no part of them."""
    begun = ""
    for line in re.split("\r?\n|\r", text):
        stripped = line.strip()
        if begun and stripped[:1] in {"#", ";"}:
            continue
        if stripped.endswith("\\"):
            begun += stripped[:-1] + " "
            continue
        yield (begun + stripped).strip()
        begun = ""
    yield begun.strip()


def last(section: Section, key: str) -> str:
    """Return the value of a setting that holds one, the last; empty if it is absent."""
    return (section.get(key) or [""])[-1]


def span_of(section: Section, key: str) -> timedelta | None:
    """Return a span, rounded up to whole seconds; None if it is absent or `infinity`.

    Raises CannotMove for another text.
    """
    text = last(section, key)
    if text in {"", "infinity"}:
        return None
    parts = _SPAN.findall(text)
    if not parts or _SPAN.sub("", text).strip() or any(unit not in _UNITS for _, unit in parts):
        raise CannotMove(f"its {key} {text[:60]!r} is not a span of time", "correct the unit")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return timedelta(seconds=min(math.ceil(seconds), MOST_SECONDS))


def literal(text: str, signs: str) -> str:
    """Return a text with each doubled sign once; raises CannotMove for one that stands for more.

    `%` and a letter is a specifier; `$NAME` as a word, and `${NAME}`, are variables. Any other
    single sign stands for itself, such as that of the shell's `$(date)`.
    """
    for sign in signs:
        if _MEANING[sign].search(text.replace(2 * sign, "")):
            why = f"{text[:60]!r} has specifiers or variables ({sign})"
            raise CannotMove(why, "write out what they stand for")
        text = text.replace(2 * sign, sign)
    return text


def words(text: str) -> list[str]:
    """Return the words of a setting, without their quotes; raises CannotMove."""
    if _ESCAPE.search(text):
        raise CannotMove(f"{text[:60]!r} has escapes of systemd", "move the command into a script")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise CannotMove(f"its quotes are not closed: {error}", "correct the service") from None
