"""Rules of event actions: due at an event of a user, or some time after it."""

import re
from datetime import timedelta
from typing import Annotated, Any

from dateutil.relativedelta import relativedelta
from pydantic import BeforeValidator

from models.document import Document
from models.durations import format_delay, parse_delay
from models.fingerprint import SEPARATOR
from models.parsing import Reading
from models.problems import listed, nearest
from models.values import Zone, parse_name

ACTIVATED = "instance.user.activated"
CREATED = "instance.user.created"
LAST_SEEN = "instance.user.last_seen"
EVENTS = (ACTIVATED, CREATED, LAST_SEEN)
RESERVED_EVENTS = "instance."
_EVENT = re.compile("[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")


def event_name(value: object) -> str:
    """Return the event name `value`; raises ValueError with what to write instead."""
    if not isinstance(value, str) or _EVENT.fullmatch(value) is None:
        raise ValueError("write an event's name: letters, digits and . _ : -, at most 200")
    if value.startswith(RESERVED_EVENTS) and value not in EVENTS:
        near = nearest(value, EVENTS)
        hint = f'did you mean "{near}"?' if near else f"known are {listed(EVENTS)}"
        raise ValueError(f"is not a built-in event; {hint}")
    return value


def event_id(value: object) -> str:
    """Return the id `value` of a custom event; raises ValueError with what to write instead."""
    id = parse_name(value)
    if SEPARATOR in id:
        raise ValueError(
            f'contains "{SEPARATOR}", which separates parts of a fingerprint; remove it'
        )
    return id


def _delay(value: object) -> str:
    return format_delay(*parse_delay(value))


EventName = Annotated[str, BeforeValidator(event_name)]


class OnEventModel(Document):
    """Due at each such event, once per subject."""

    on: EventName

    @property
    def event(self) -> str:
        """The event's name."""
        return self.on


class AfterEventModel(Document):
    """Due `delay` after each such event, once per subject.

    Weeks, days and smaller units are exact. Years and months are added first, on the wall clock of
    `timezone` (default: the small app's, stored only if the delay has years or months).
    """

    after: EventName
    delay: Annotated[str, BeforeValidator(_delay)]
    timezone: Zone | None = None

    @classmethod
    def completed(cls, raw: dict[str, Any], reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the small app's zone if the delay has years or months."""
        try:
            calendar, _ = parse_delay(raw.get("delay"))
        except ValueError:
            return raw
        return {"timezone": reading.default_zone, **raw} if calendar else raw

    @property
    def event(self) -> str:
        """The event's name."""
        return self.after

    @property
    def delay_parts(self) -> tuple[relativedelta, timedelta]:
        """The delay's calendar part, which is added first, and its exact part."""
        return parse_delay(self.delay)
