"""Zone names in documents, and wall-clock times as instants.

The rules of cron are loaded with the first zone: most commands only show instants in UTC.
"""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

# Wall clocks of periods count from here (cron/zone.py).
_WALL_ORIGIN = datetime(1969, 1, 1)  # noqa: DTZ001 - a wall clock has no zone
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_zone(value: object) -> str:
    """Return the canonical IANA name of the zone `value`.

    Raises ValueError, with the nearest known name, for an unknown zone.
    """
    if not isinstance(value, str):
        raise ValueError('is not a zone; write an IANA name such as "Europe/Paris"')
    from cron.errors import InvalidRule
    from cron.zone import canonical_name

    try:
        return canonical_name(value)
    except InvalidRule as error:
        _, _, remedy = error.problem.rpartition("; ")
        raise ValueError(f"is not a known zone; {remedy}") from None


def offsets_of(zone: str, since: datetime, until: datetime) -> list[tuple[datetime, timedelta]]:
    """Return the offsets of a zone in [since, until], each with the instant at which it ends."""
    from cron.zone import zone_named

    first, last = since.timestamp(), until.timestamp()
    origin = int((EPOCH.replace(tzinfo=None) - _WALL_ORIGIN).total_seconds())
    return [
        (EPOCH + timedelta(seconds=one.end), timedelta(seconds=one.shift - origin))
        for one in zone_named(zone).wildcard
        if one.end > first and one.start <= last
    ]


def instant_of(wall: datetime, zone: str) -> datetime:
    """Return the UTC instant at which the clock of `zone` shows the naive time `wall`.

    A skipped time is the end of its gap; a repeated time is the first of the two.
    Raises ValueError for a time outside 1970 to 2199.
    """
    from cron.zone import zone_named

    shown = int((wall - _WALL_ORIGIN).total_seconds())
    known = zone_named(zone)
    # A zone's clock is less than two days from UTC.
    since = shown - int((EPOCH.replace(tzinfo=None) - _WALL_ORIGIN).total_seconds()) - 2 * 86_400
    for period in known.wildcard[max(bisect_right(known.starts, since) - 1, 0) :]:
        if shown - period.shift < period.end:
            second = max(shown - period.shift, period.start)
            break
    else:
        raise ValueError("lies outside the years 1970 to 2199")
    if second == 0 and wall.year < 1970:
        raise ValueError("lies outside the years 1970 to 2199")
    return EPOCH + timedelta(seconds=second, microseconds=wall.microsecond)


def in_zone(at: datetime, zone: str) -> str:
    """Return an instant in a zone: `Mon 2026-11-23 07:00 +01:00`."""
    local = at.astimezone(ZoneInfo(zone))
    clock = "%H:%M:%S" if local.second else "%H:%M"
    offset = local.strftime("%z")
    return f"{local.strftime(f'%a %Y-%m-%d {clock}')} {offset[:3]}:{offset[3:]}"
