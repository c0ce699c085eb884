"""The transitions of a time zone up to 2200, read from its TZif file (RFC 9636)."""

import calendar
import re
import struct
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

END_YEAR = 2200

_HEADER = struct.Struct(">4sc15x6l")
_NAME = r"(?:<[^>]+>|[A-Za-z]+)"
_TIME = r"[+-]?\d+(?::\d+){0,2}"
_FOOTER = re.compile(
    rf"{_NAME}({_TIME})(?:{_NAME}({_TIME})?,([^,/]+)(?:/({_TIME}))?,([^,/]+)(?:/({_TIME}))?)?"
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


class Transition(NamedTuple):
    """From this UTC second on, the wall clock is `offset` seconds ahead of UTC."""

    second: int
    offset: int


class YearlyChange(NamedTuple):
    """A day of the year (`Mm.w.d`, `Jn` or `n`), its UTC second of change, and the new offset."""

    day: str
    time: int
    offset: int


def transitions(data: bytes) -> list[Transition]:
    """Return every change of offset up to the end of 2199, in order, the first one at -2**62.

    The file lists the first ones; its last line, a POSIX rule, gives those of later years.
    """
    listed, footer = _read(data)
    changes = [*listed, *_after(listed[-1].second, footer)]
    return [
        change
        for before, change in zip([None, *changes], changes, strict=False)
        if before is None or before.offset != change.offset
    ]


def _read(data: bytes) -> tuple[list[Transition], str]:
    """Return the listed transitions and the POSIX rule of the file's 64-bit block."""
    _, _, isut, isstd, leap, count, types, letters = _HEADER.unpack_from(data)
    block = _HEADER.size + 5 * count + 6 * types + letters + 8 * leap + isstd + isut
    magic, _, isut, isstd, leap, count, types, letters = _HEADER.unpack_from(data, block)
    if magic != b"TZif":
        raise ValueError("is not a TZif file of version 2 or later")
    at = block + _HEADER.size
    seconds = struct.unpack_from(f">{count}q", data, at)
    kinds = data[at + 8 * count : at + 9 * count]
    offsets = [
        offset for offset, _, _ in struct.iter_unpack(">lBB", data[at + 9 * count :][: 6 * types])
    ]
    first = Transition(-(2**62), offsets[0])
    listed = [
        Transition(second, offsets[kind]) for second, kind in zip(seconds, kinds, strict=True)
    ]
    end = at + 9 * count + 6 * types + letters + 12 * leap + isstd + isut
    return [first, *listed], data[end:].decode("ascii").strip("\n")


def _after(last: int, footer: str) -> Iterator[Transition]:
    """Yield the changes that a POSIX rule makes after the UTC second `last`, up to END_YEAR."""
    changes = _yearly_changes(footer)
    first_year = max(1970, date.fromordinal(max(last, 0) // 86400 + _EPOCH_DAY).year)
    for year in range(first_year, END_YEAR):
        instants = [
            (_day(change.day, year) * 86400 + change.time, change.offset) for change in changes
        ]
        for second, offset in sorted(instants):
            if second > last:
                yield Transition(second, offset)


def _yearly_changes(footer: str) -> list[YearlyChange]:
    match = _FOOTER.fullmatch(footer)
    if match is None:
        raise ValueError(f"the time zone rule {footer!r} is not a known POSIX rule")
    standard_text, summer_text, start, start_time, end, end_time = match.groups()
    if start is None:
        return []
    standard = -_seconds(standard_text)
    summer = standard + 3600 if summer_text is None else -_seconds(summer_text)
    return [
        YearlyChange(start, _seconds(start_time or "2") - standard, summer),
        YearlyChange(end, _seconds(end_time or "2") - summer, standard),
    ]


def _seconds(text: str) -> int:
    hours, minutes, seconds = [*map(int, text.lstrip("+-").split(":")), 0, 0][:3]
    total = hours * 3600 + minutes * 60 + seconds
    return -total if text.startswith("-") else total


def _day(rule: str, year: int) -> int:
    """Return the day that a POSIX rule names in `year`, counted from 1970-01-01."""
    if rule.startswith("M"):
        month, week, weekday = map(int, rule[1:].split("."))
        first = date(year, month, 1)
        day = 1 + (weekday - first.isoweekday()) % 7 + 7 * (week - 1)
        if day > calendar.monthrange(year, month)[1]:
            day -= 7
        return first.toordinal() + day - 1 - _EPOCH_DAY
    start = date(year, 1, 1).toordinal() - _EPOCH_DAY
    if not rule.startswith("J"):
        return start + int(rule)
    number = int(rule[1:])
    return start + number - 1 + (number >= 60 and calendar.isleap(year))
