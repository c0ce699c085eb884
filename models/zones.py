"""Zone names as admins write them, and what a wall clock shows as an instant."""

from datetime import UTC, datetime, timedelta

from cron import InvalidRule
from cron.zone import canonical_name, zone_named

# A stretch's wall clock counts from here (cron/zone.py).
_WALL_ORIGIN = datetime(1969, 1, 1)  # noqa: DTZ001 - a wall clock has no zone
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_zone(value: object) -> str:
    """Return the canonical IANA name of the zone `value`, its capitals corrected.

    Raises ValueError, with the nearest known name, for anything that is no zone.
    """
    if not isinstance(value, str):
        raise ValueError('is not a zone; write an IANA name such as "Europe/Paris"')
    try:
        return canonical_name(value)
    except InvalidRule as error:
        _, _, remedy = error.problem.partition("; ")
        raise ValueError(f"is not a known zone; {remedy}") from None


def instant_of(wall: datetime, zone: str) -> datetime:
    """Return the UTC instant at which the clock of `zone` shows the naive time `wall`.

    A time that the clock skips is the end of the gap; one that it shows twice is the first.
    Raises ValueError for a time outside 1970 to 2199.
    """
    shown = int((wall - _WALL_ORIGIN).total_seconds())
    for stretch in zone_named(zone).wildcard:
        if shown - stretch.shift < stretch.end:
            second = max(shown - stretch.shift, stretch.start)
            break
    else:
        raise ValueError("lies outside the years 1970 to 2199")
    if second == 0 and wall.year < 1970:
        raise ValueError("lies outside the years 1970 to 2199")
    return _EPOCH + timedelta(seconds=second, microseconds=wall.microsecond)
