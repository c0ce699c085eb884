"""Zones as periods of constant offset, from the tz release of the tzdata wheel."""

import difflib
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache, partial
from importlib.resources import files
from io import BytesIO
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import tzdata

from cron.days import ORIGIN
from cron.errors import InvalidRule, quote

# Instants are UTC seconds in [0, END): from 1970-01-01T00:00Z to before 2200-01-01T00:00Z.
END = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp())

# Debian's cron compares the minute in which it wakes up with the last one it did: it catches up if
# that is up to 180 minutes ahead (a gap of 179), and waits if it is up to 180 minutes back.
LONGEST_GAP = 179
LONGEST_REPEAT = 180

DAY_S = 86_400
# Offsets are asked for as often. Two changes of a zone lie six days apart or more.
STEP = 4 * DAY_S

LONGEST_NAME = 80
_ALIKE = 0.75
_NONE, _SECOND = timedelta(), timedelta(seconds=1)
_EXAMPLE = "write an IANA name such as 'Europe/Paris'"
_ORIGIN_SHIFT = (date(1970, 1, 1) - ORIGIN).days * DAY_S


class OffsetPeriod(NamedTuple):
    """A span of UTC seconds [start, end) with a constant offset.

    `second + shift` is the wall clock in seconds since 1969-01-01 00:00. Occurrences fall in
    [begin, end). If a wall-clock minute in [skipped, shown) matches, there is one more at `start`:
    the clock skipped these minutes.
    """

    start: int
    end: int
    shift: int
    begin: int
    skipped: int
    shown: int


class Zone(NamedTuple):
    """A zone's periods from 1970 to 2199: for wildcard rules and for fixed ones."""

    name: str
    starts: tuple[int, ...]
    wildcard: tuple[OffsetPeriod, ...]
    fixed: tuple[OffsetPeriod, ...]


def tz_release() -> str:
    """Return the release of the tz database in use, such as '2026f'."""
    return str(tzdata.IANA_VERSION)


def zone_named(name: str) -> Zone:
    """Return the zone of an IANA name in any case; an alias keeps its name.

    Raises InvalidRule (field 'zone') with the nearest name if it is unknown.
    """
    if not isinstance(name, str):
        raise InvalidRule("zone", f"is not text but {type(name).__name__}; {_EXAMPLE}")
    return _known(name)


@lru_cache(maxsize=2048)
def _known(name: str) -> Zone:
    return _zone(canonical_name(name))


def canonical_name(name: str) -> str:
    """Return the IANA name in its canonical spelling; names come from pytz, offsets never do."""
    import pytz

    try:
        if len(name) <= LONGEST_NAME:
            return str(pytz.timezone(name).zone)
    except pytz.UnknownTimeZoneError:
        pass
    near = _near(name[:LONGEST_NAME])
    remedy = _EXAMPLE if near is None else f"write '{near}'"
    raise InvalidRule("zone", f"{quote(name)} is unknown; {remedy}")


def _near(name: str) -> str | None:
    """Return the zone whose city is spelled most like that of `name`; None if none is."""
    import pytz

    # Only places: UTC is no advice for UTC+2, and Etc/GMT+2 is two hours behind it.
    zones = [zone for zone in pytz.common_timezones if "/" in zone]
    cities = {zone.rpartition("/")[2].lower(): zone for zone in zones}
    city = name.strip().lower().replace(" ", "_").rpartition("/")[2]
    found = difflib.get_close_matches(city, cities, 1, _ALIKE)
    return cities[found[0]] if found else None


# The tz release bounds this cache: it has some 600 names.
@cache
def _zone(name: str) -> Zone:
    resource = files("tzdata").joinpath("zoneinfo", *name.split("/"))
    return _of_file(resource.read_bytes())._replace(name=name)


@cache
def _of_file(data: bytes) -> Zone:
    """Return a zone without a name: aliases, four names in ten, share it."""
    wildcard = tuple(_periods(ZoneInfo.from_file(BytesIO(data))))
    starts = tuple(period.start for period in wildcard)
    return Zone("", starts, wildcard, tuple(_catching_up(wildcard)))


def _periods(zone: ZoneInfo) -> Iterator[OffsetPeriod]:
    """Yield the periods of [0, END) for wildcard rules: each counts as a whole."""
    for (start, offset), (end, _) in pairwise([*_changes(zone), (END, 0)]):
        shift = offset + _ORIGIN_SHIFT
        yield OffsetPeriod(start, end, shift, start, 0, 0)


def _changes(zone: ZoneInfo) -> Iterator[tuple[int, int]]:
    """Yield the second from which on an offset in seconds holds, from 1970 up to END.

    An offset of the wall clock is cheap to ask for: it leads to the days of a change.
    """
    known = datetime.fromtimestamp(0, zone).utcoffset() or _NONE
    yield 0, known // _SECOND
    for number, offset in enumerate(map(zone.utcoffset, _walls())):
        if offset is not None and offset != known:
            end = number * STEP - offset // _SECOND
            since = range(end - STEP - DAY_S, end + 1)
            is_new = partial(_is_other, zone, known)
            yield since[bisect_left(since, True, key=is_new)], offset // _SECOND
            known = offset


@cache
def _walls() -> tuple[datetime, ...]:
    """Return the times on a wall clock at which offsets are asked for."""
    first = date(1970, 1, 1).toordinal()
    days = range(first, first + END // DAY_S, STEP // DAY_S)
    return tuple(map(datetime.fromordinal, days))


def _is_other(zone: ZoneInfo, offset: timedelta, second: int) -> bool:
    return datetime.fromtimestamp(second, zone).utcoffset() != offset


def _catching_up(periods: tuple[OffsetPeriod, ...]) -> Iterator[OffsetPeriod]:
    """Yield the same periods for fixed rules, after the main loop of Debian's cron.

    `due` is the first wall-clock minute that fixed rules have not had yet.
    """
    due = first_minute(periods[0].start + periods[0].shift)
    for period in periods:
        shown = first_minute(period.start + period.shift)
        start, end, shift = period[:3]
        if 0 < shown - due <= LONGEST_GAP:
            yield OffsetPeriod(start, end, shift, start, due, shown)
        elif 0 < due - shown <= LONGEST_REPEAT:
            yield OffsetPeriod(start, end, shift, due * 60 - shift, 0, 0)
        else:
            due = shown
            yield period
        due = max(due, first_minute(period.end + period.shift))


def first_minute(second: int) -> int:
    """Return the first wall-clock minute that begins at or after a wall-clock second.

    If an offset is no whole minute (Monrovia until 1972), a minute that the clock does not show
    from its second :00 on counts as skipped.
    """
    return -(-second // 60)
