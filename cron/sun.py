"""The position of the sun to instants: sunrise, sunset, noon, dawn and dusk at a place.

Source of the formulas: Jean Meeus, Astronomical Algorithms, 2nd edition, chapters 12, 15 and 25
(low accuracy, 0.01°). The sun moves by that much in 2.4 seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from math import asin, atan2, cos, degrees, radians, sin

DAY_S = 86_400
J2000 = datetime(2000, 1, 1, 12, tzinfo=UTC).timestamp()
BEGINNING = int(datetime(1970, 1, 1, tzinfo=UTC).timestamp())
END = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp())
# At the poles an event comes once a year.
MOST_DAYS_APART = 800
# How far refraction lifts the sun at the horizon; half the sun's width at its mean distance.
REFRACTION, HALF_WIDTH = 34 / 60, 959.63 / 3600


class SolarEvent(StrEnum):
    """What the sun does at a place, in the words of Celery's `solar`."""

    DAWN_ASTRONOMICAL = "dawn_astronomical"
    DAWN_NAUTICAL = "dawn_nautical"
    DAWN_CIVIL = "dawn_civil"
    SUNRISE = "sunrise"
    SOLAR_NOON = "solar_noon"
    SUNSET = "sunset"
    DUSK_CIVIL = "dusk_civil"
    DUSK_NAUTICAL = "dusk_nautical"
    DUSK_ASTRONOMICAL = "dusk_astronomical"


# How far below the horizon the sun's centre is at a dawn or dusk, in degrees; at sunrise and sunset
# its upper edge is seen at the horizon.
_DEPTHS = {"civil": 6.0, "nautical": 12.0, "astronomical": 18.0}


@dataclass(frozen=True, slots=True)
class SolarSchedule:
    """The occurrences of an event of the sun at a place, from 1970 on and before 2200.

    Latitude (north is positive) and longitude (east is positive) are in degrees. Arguments are
    aware datetimes; results are UTC, at the nearest full minute. Within the polar circles some days
    lack an event.
    """

    event: SolarEvent
    lat: float
    lon: float

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly after `after`; None from 2200 on."""
        second = max(after.timestamp(), BEGINNING - 1)
        return next(self._from(second, END - 1), None)

    def last(self, since: datetime, until: datetime) -> datetime | None:
        """Return the latest occurrence in (since, until], or None."""
        first, end = self._range(since, until)
        day = self._day(end) + 1
        for number in range(day, max(day - MOST_DAYS_APART, self._day(first) - 1) - 1, -1):
            at = _instant(self, number)
            if at is not None and at <= end:
                return datetime.fromtimestamp(at, UTC) if at > first else None
        return None

    def between(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the occurrences in (since, until], ascending."""
        first, end = self._range(since, until)
        return list(self._from(first, end)) if first < end else []

    def count(self, since: datetime, until: datetime) -> int:
        """Return the number of occurrences in (since, until]."""
        return len(self.between(since, until))

    def _range(self, since: datetime, until: datetime) -> tuple[float, float]:
        return max(since.timestamp(), BEGINNING - 1), min(until.timestamp(), END - 1)

    def _from(self, after: float, until: float) -> Iterator[datetime]:
        """Yield the occurrences in the seconds (after, until]; ends where none comes for long."""
        number = seen = self._day(after) - 1
        while number - seen < MOST_DAYS_APART:
            at = _instant(self, number)
            if at is not None and at > until:
                return
            if at is not None:
                seen = number
                if at > after:
                    yield datetime.fromtimestamp(at, UTC)
            number += 1

    def _day(self, second: float) -> int:
        """Return the number of the solar day at a second: it begins at midnight by the sun."""
        return int((second + self.lon * 240) // DAY_S)


@lru_cache(maxsize=10_000)
def _instant(schedule: SolarSchedule, day: int) -> int | None:
    """Return the second of a solar day's event, at a full minute, or None."""
    middle = day * DAY_S - schedule.lon * 240 + DAY_S / 2
    noon = _culmination(schedule.lon, middle, 0.0)
    if schedule.event is SolarEvent.SOLAR_NOON:
        return _full_minute(noon)
    midnight = _culmination(schedule.lon, middle - DAY_S / 2, 180.0)
    next_midnight = _culmination(schedule.lon, middle + DAY_S / 2, 180.0)
    is_rising = schedule.event.startswith(("dawn", "sunrise"))
    # Between its lowest and its highest, the sun only rises or only sinks; at the poles it may do
    # either in both halves of a day.
    for begin, end in ((midnight, noon), (noon, next_midnight)):
        was_up, is_up = _is_up(schedule, begin), _is_up(schedule, end)
        if was_up != is_up and is_up == is_rising:
            return _full_minute(_change(schedule, begin, end))
    return None


def _culmination(lon: float, near: float, angle: float) -> float:
    """Return the second near `near` at which the sun's hour angle is `angle` degrees."""
    for _ in range(2):
        right_ascension, _, _ = _position(near)
        off = (_sidereal(near) + lon - right_ascension - angle + 180) % 360 - 180
        near -= off * 240
    return near


def _change(schedule: SolarSchedule, begin: float, end: float) -> float:
    """Return the second, to within one, at which the sun rises or sets between the two."""
    was_up = _is_up(schedule, begin)
    while end - begin > 1:
        middle = (begin + end) / 2
        if _is_up(schedule, middle) == was_up:
            begin = middle
        else:
            end = middle
    return (begin + end) / 2


def _is_up(schedule: SolarSchedule, second: float) -> bool:
    """Return whether the sun stands above the height that defines the event."""
    right_ascension, declination, distance = _position(second)
    hour_angle = radians(_sidereal(second) + schedule.lon - right_ascension)
    lat, dec = radians(schedule.lat), radians(declination)
    height = degrees(asin(sin(lat) * sin(dec) + cos(lat) * cos(dec) * cos(hour_angle)))
    depth = _DEPTHS.get(schedule.event.partition("_")[2])
    return height >= -(REFRACTION + HALF_WIDTH / distance if depth is None else depth)


def _position(second: float) -> tuple[float, float, float]:
    """Return the sun's apparent right ascension, declination (degrees) and distance (au)."""
    centuries = (second - J2000) / (36_525 * DAY_S)
    mean = radians(357.52911 + 35_999.05029 * centuries - 0.0001537 * centuries**2)
    eccentricity = 0.016708634 - 0.000042037 * centuries
    centre = (
        (1.914602 - 0.004817 * centuries) * sin(mean)
        + (0.019993 - 0.000101 * centuries) * sin(2 * mean)
        + 0.000289 * sin(3 * mean)
    )
    node = radians(125.04 - 1934.136 * centuries)
    longitude = 280.46646 + 36_000.76983 * centuries + 0.0003032 * centuries**2 + centre
    apparent = radians(longitude - 0.00569 - 0.00478 * sin(node))
    tilt = radians(23.439291 - 0.0130042 * centuries + 0.00256 * cos(node))
    distance = (
        1.000001018 * (1 - eccentricity**2) / (1 + eccentricity * cos(mean + radians(centre)))
    )
    right_ascension = degrees(atan2(cos(tilt) * sin(apparent), cos(apparent)))
    return right_ascension, degrees(asin(sin(tilt) * sin(apparent))), distance


def _sidereal(second: float) -> float:
    """Return the apparent sidereal time at Greenwich in degrees."""
    days = (second - J2000) / DAY_S
    node = radians(125.04 - 1934.136 * days / 36_525)
    mean = 280.46061837 + 360.98564736629 * days + 0.000387933 * (days / 36_525) ** 2
    return mean - 0.00478 * sin(node) * cos(radians(23.44))


def _full_minute(second: float) -> int:
    return round(second / 60) * 60
