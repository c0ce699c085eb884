"""Instants as people say them: `now`, `yesterday 07:00`, `5m`, a date, a time of today."""

import re
from contextlib import suppress
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from models.values.zones import instant_of

_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_CLOCK = r"(?P<clock>[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)"
_DAY = re.compile(
    rf"(?:(?P<name>yesterday|today|tomorrow)|(?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}))"
    rf"(?:[ ,]+(?:at )?{_CLOCK})?",
    re.IGNORECASE,
)
_TODAY = re.compile(_CLOCK)
_AGO = re.compile(r"([0-9]{1,6}) ?([smhdw])(?: ago)?", re.IGNORECASE)


def spoken_instant(text: str, zone: str, now: datetime) -> datetime | None:
    """Return the instant that `text` says on the clock of `zone`, in UTC; None for another text.

    A span such as `5m` or `1d` lies before `now`. A day without a time is its beginning. A date or
    a time that does not exist is another text.
    """
    with suppress(ValueError, OverflowError):
        return _read(text, zone, now)
    return None


def _read(text: str, zone: str, now: datetime) -> datetime | None:
    said = " ".join(text.split())
    if said.lower() == "now":
        return now
    if ago := _AGO.fullmatch(said):
        return now - timedelta(**{_UNITS[ago[2].lower()]: int(ago[1])})
    found = _DAY.fullmatch(said) or _TODAY.fullmatch(said)
    if found is None:
        return None
    parts = {"name": None, "date": None, **found.groupdict()}
    day = now.astimezone(ZoneInfo(zone)).date()
    if parts["name"]:
        day += timedelta(days=_DAYS[parts["name"].lower()])
    written = parts["date"] or day.isoformat()
    clock = (parts["clock"] or "00:00").zfill(5)
    return instant_of(datetime.fromisoformat(f"{written}T{clock}"), zone)
