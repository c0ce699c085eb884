"""Zones as stretches of constant offset, from the tz release of the tzdata wheel."""

import difflib
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

import tzdata

from cron.days import ORIGIN
from cron.errors import InvalidRule, quote
from cron.tzif import Transition, transitions

# Instants are UTC seconds in [0, END): from 1970-01-01T00:00Z to before 2200-01-01T00:00Z.
END = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp())
LONGEST_NAME = 80

# Debian's cron compares the minute in which it wakes up with the last one it did: it catches up if
# that is up to 180 minutes ahead (a gap of 179), and waits if it is up to 180 minutes back.
LONGEST_GAP = 179
LONGEST_REPEAT = 180

_EXAMPLE = "write an IANA name such as 'Europe/Paris'"
# Abbreviations are no zones: several places use each, and their clocks change.
ABBREVIATED = {
    "aedt": "Australia/Sydney", "aest": "Australia/Sydney", "bst": "Europe/London",
    "cdt": "America/Chicago", "cest": "Europe/Paris", "cst": "America/Chicago",
    "edt": "America/New_York", "eest": "Europe/Athens", "ist": "Asia/Kolkata",
    "jst": "Asia/Tokyo", "kst": "Asia/Seoul", "mdt": "America/Denver", "mesz": "Europe/Berlin",
    "mez": "Europe/Berlin", "msk": "Europe/Moscow", "pdt": "America/Los_Angeles",
    "pst": "America/Los_Angeles", "sgt": "Asia/Singapore", "west": "Europe/Lisbon", "z": "UTC",
}  # fmt: skip
# Places west of Greenwich whose clocks change, by their offset in winter.
AT_OFFSET = {
    "-3": "America/Miquelon", "-4": "America/Halifax", "-5": "America/New_York",
    "-6": "America/Chicago", "-7": "America/Denver", "-8": "America/Los_Angeles",
    "-9": "America/Anchorage", "+10": "Australia/Sydney", "+12": "Pacific/Auckland",
}  # fmt: skip
# Offsets that no Etc/ zone has.
BETWEEN_HOURS = {
    "+3:30": "Asia/Tehran", "+4:30": "Asia/Kabul", "+5:30": "Asia/Kolkata",
    "+5:45": "Asia/Kathmandu", "+6:30": "Asia/Yangon", "+8:45": "Australia/Eucla",
    "+9:30": "Australia/Darwin", "-3:30": "America/St_Johns", "-9:30": "Pacific/Marquesas",
}  # fmt: skip
_OFFSET = re.compile(r"(?:utc|gmt)?_?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_ORIGIN_SHIFT = (date(1970, 1, 1) - ORIGIN).days * 86400


class Stretch(NamedTuple):
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
    """A zone's stretches from 1970 to 2199: for wildcard rules and for fixed ones."""

    name: str
    starts: tuple[int, ...]
    wildcard: tuple[Stretch, ...]
    fixed: tuple[Stretch, ...]


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
    near = _nearest(name)
    raise InvalidRule("zone", f"{quote(name)} is unknown; {f'write {near}' if near else _EXAMPLE}")


def _nearest(name: str) -> str | None:
    """Return the known name nearest to `name`, by spelling, last part or offset, in quotes."""
    import pytz

    spelled = {known.lower(): known for known in pytz.all_timezones}
    wanted = name[:LONGEST_NAME].strip().lower().replace(" ", "_")
    offset = _OFFSET.fullmatch(wanted)
    if offset is not None:
        return _fixed(*offset.groups(), spelled=spelled)
    place = ABBREVIATED.get(wanted) or _of_country(wanted.replace("_", " "))
    if place is not None:
        return f"'{place}'" if place == "UTC" else f"'{place}', or another place with your clock"
    in_city = [known for known in spelled if known.rpartition("/")[2] == wanted]
    # Short names are alike by chance: CEST is not EST.
    alike = difflib.get_close_matches(wanted, spelled) if len(wanted) > 4 else []
    near = [wanted] if wanted in spelled else in_city or alike
    return f"'{spelled[near[0]]}'" if near else None


def _of_country(name: str) -> str | None:
    """Return the first zone of a country, by its English name."""
    import pytz

    codes = (code for code, known in pytz.country_names.items() if known.lower() == name)
    zones: list[str] = next((pytz.country_timezones.get(code, []) for code in codes), [])
    return zones[0] if zones else None


def _fixed(sign: str, hours: str, minutes: str | None, *, spelled: dict[str, str]) -> str | None:
    """Return the zone of a whole-hour offset from UTC; POSIX names it by the opposite sign."""
    if minutes not in (None, "00"):
        place = BETWEEN_HOURS.get(f"{sign}{int(hours)}:{minutes}")
        return None if place is None else f"'{place}', a place with that offset"
    if int(hours) == 0:
        return "'UTC'"
    known = spelled.get(f"etc/gmt{'-' if sign == '+' else '+'}{int(hours)}")
    if known is None:
        return None
    place = AT_OFFSET.get(f"{sign}{int(hours)}", "Europe/Paris")
    return (
        f"'{known}' (UTC{sign}{int(hours)}: its name has the opposite sign), or a place such as "
        f"'{place}', where the clock changes"
    )


# The tz release bounds this cache: it has some 600 names.
@cache
def _zone(name: str) -> Zone:
    resource = files("tzdata").joinpath("zoneinfo", *name.split("/"))
    return _of_file(resource.read_bytes())._replace(name=name)


@cache
def _of_file(data: bytes) -> Zone:
    """Return a zone without a name: aliases, four names in ten, share it."""
    wildcard = tuple(_stretches(transitions(data)))
    starts = tuple(stretch.start for stretch in wildcard)
    return Zone("", starts, wildcard, tuple(_catching_up(wildcard)))


def _stretches(changes: list[Transition]) -> Iterator[Stretch]:
    """Yield the stretches of [0, END) for wildcard rules: each counts as a whole."""
    for change, after in pairwise([*changes, Transition(END, 0)]):
        start = max(change.second, 0)
        if after.second > start:
            yield Stretch(start, after.second, change.offset + _ORIGIN_SHIFT, start, 0, 0)


def _catching_up(stretches: tuple[Stretch, ...]) -> Iterator[Stretch]:
    """Yield the same stretches for fixed rules, after the main loop of Debian's cron.

    `due` is the first wall-clock minute that fixed rules have not had yet.
    """
    due = first_minute(stretches[0].start + stretches[0].shift)
    for stretch in stretches:
        shown = first_minute(stretch.start + stretch.shift)
        start, end, shift = stretch[:3]
        if 0 < shown - due <= LONGEST_GAP:
            yield Stretch(start, end, shift, start, due, shown)
        elif 0 < due - shown <= LONGEST_REPEAT:
            yield Stretch(start, end, shift, due * 60 - shift, 0, 0)
        else:
            due = shown
            yield stretch
        due = max(due, first_minute(stretch.end + stretch.shift))


def first_minute(second: int) -> int:
    """Return the first wall-clock minute that begins at or after a wall-clock second.

    If an offset is no whole minute (Monrovia until 1972), a minute that the clock does not show
    from its second :00 on counts as skipped.
    """
    return -(-second // 60)
