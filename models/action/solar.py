"""The rule of the sun: sunrise, sunset and seven more events at a place."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import BeforeValidator

from cron import SolarEvent, SolarSchedule
from models.action.rule import Excepted, Jittered
from models.action.schedule import Schedule
from models.values import one_of, parse_degrees

_SOLAR: Mapping[SolarEvent, str] = {
    SolarEvent.DAWN_ASTRONOMICAL: "astronomical dawn",
    SolarEvent.DAWN_NAUTICAL: "nautical dawn",
    SolarEvent.DAWN_CIVIL: "civil dawn",
    SolarEvent.SUNRISE: "sunrise",
    SolarEvent.SOLAR_NOON: "solar noon",
    SolarEvent.SUNSET: "sunset",
    SolarEvent.DUSK_CIVIL: "civil dusk",
    SolarEvent.DUSK_NAUTICAL: "nautical dusk",
    SolarEvent.DUSK_ASTRONOMICAL: "astronomical dusk",
}


class SolarModel(Jittered, Excepted):
    """Due at an event of the sun at a place; north and east are positive."""

    has_years: ClassVar[bool] = True

    solar: Annotated[SolarEvent, BeforeValidator(one_of(*SolarEvent))]
    lat: Annotated[float, BeforeValidator(partial(parse_degrees, most=90))]
    lon: Annotated[float, BeforeValidator(partial(parse_degrees, most=180))]

    def every_occurrence(self, uid: UUID) -> Schedule:  # noqa: ARG002 - the same for all actions
        """Return the event's instants."""
        return SolarSchedule(self.solar, self.lat, self.lon)

    def words(self, zone: str) -> str:  # noqa: ARG002 - the sun has none
        """Return the event and the place: `at sunset (48.85° N, 2.35° E)`."""
        north, east = "N" if self.lat >= 0 else "S", "E" if self.lon >= 0 else "W"
        place = f"{abs(self.lat):g}° {north}, {abs(self.lon):g}° {east}"
        return f"at {_SOLAR[self.solar]} ({place})"
