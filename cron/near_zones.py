"""Zone names near to a wrong one: by city, abbreviation, offset, country or Windows name."""

import difflib
import re
import unicodedata
from functools import cache

# Abbreviations are no zones: several places use each, and their clocks change.
ABBREVIATED = {
    "aedt": "Australia/Sydney", "aest": "Australia/Sydney", "akst": "America/Anchorage",
    "bst": "Europe/London", "cdt": "America/Chicago", "cest": "Europe/Paris",
    "cst": "America/Chicago", "edt": "America/New_York", "eest": "Europe/Athens",
    "et": "America/New_York", "hkt": "Asia/Hong_Kong", "ist": "Asia/Kolkata", "jst": "Asia/Tokyo",
    "kst": "Asia/Seoul", "mdt": "America/Denver", "mesz": "Europe/Berlin", "mez": "Europe/Berlin",
    "msk": "Europe/Moscow", "nzdt": "Pacific/Auckland", "nzst": "Pacific/Auckland",
    "pdt": "America/Los_Angeles", "pst": "America/Los_Angeles", "pt": "America/Los_Angeles",
    "sast": "Africa/Johannesburg", "sgt": "Asia/Singapore", "west": "Europe/Lisbon", "z": "UTC",
}  # fmt: skip
# Zones of the winter time of places whose clocks change; CET, EET, MET and WET change with them.
FIXED = {"EST": ("UTC-5", "America/New_York"), "MST": ("UTC-7", "America/Denver")}
# Places that no zone is named after.
PLACES = {
    "australia": "Australia/Sydney", "bangalore": "Asia/Kolkata", "barcelona": "Europe/Madrid",
    "beijing": "Asia/Shanghai", "boston": "America/New_York", "bombay": "Asia/Kolkata",
    "brazil": "America/Sao_Paulo", "california": "America/Los_Angeles",
    "canada": "America/Toronto", "canberra": "Australia/Sydney", "delhi": "Asia/Kolkata",
    "england": "Europe/London", "frankfurt": "Europe/Berlin", "geneva": "Europe/Zurich",
    "hamburg": "Europe/Berlin", "hyderabad": "Asia/Kolkata", "lyon": "Europe/Paris",
    "marseille": "Europe/Paris", "miami": "America/New_York", "milan": "Europe/Rome",
    "mumbai": "Asia/Kolkata", "munich": "Europe/Berlin", "new delhi": "Asia/Kolkata",
    "osaka": "Asia/Tokyo", "russia": "Europe/Moscow", "saigon": "Asia/Ho_Chi_Minh",
    "san francisco": "America/Los_Angeles", "scotland": "Europe/London",
    "seattle": "America/Los_Angeles", "texas": "America/Chicago", "uk": "Europe/London",
    "us": "America/New_York", "usa": "America/New_York", "washington": "America/New_York",
    "wellington": "Pacific/Auckland",
}  # fmt: skip
# Before "Standard Time", or "Daylight Time" in words.
WINDOWS = {
    "aus eastern": "Australia/Sydney", "central": "America/Chicago",
    "central europe": "Europe/Budapest", "central european": "Europe/Warsaw",
    "china": "Asia/Shanghai", "e. south america": "America/Sao_Paulo",
    "eastern": "America/New_York", "fle": "Europe/Kiev", "gmt": "Europe/London",
    "greenwich": "Atlantic/Reykjavik", "gtb": "Europe/Bucharest", "india": "Asia/Kolkata",
    "israel": "Asia/Jerusalem", "korea": "Asia/Seoul", "mountain": "America/Denver",
    "new zealand": "Pacific/Auckland", "pacific": "America/Los_Angeles",
    "romance": "Europe/Paris", "russian": "Europe/Moscow", "se asia": "Asia/Bangkok",
    "singapore": "Asia/Singapore", "south africa": "Africa/Johannesburg", "tokyo": "Asia/Tokyo",
    "turkey": "Europe/Istanbul", "w. europe": "Europe/Berlin",
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
LONGEST_NAME = 80
ALIKE = 0.75

_OFFSET = re.compile(r"(?:utc|gmt)?_?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_OF_WINDOWS = re.compile(r"(.+) (?:standard|daylight) time(?: \(.*\))?|(.+) time")


def near_zone(name: str) -> str | None:
    """Return the known zone that `name` most likely means, in quotes; None if none is near."""
    wanted = re.sub(r"[\s_]+", "_", name[:LONGEST_NAME].strip().lower().replace("\\", "/"))
    spelled = _spelled()
    if wanted in spelled:
        return f"'{spelled[wanted]}'"
    offset = _OFFSET.fullmatch(wanted)
    if offset is not None:
        return _at_offset(*offset.groups())
    place = _of_region(wanted.replace("_", " "))
    if place is not None:
        return f"'{place}'" if place == "UTC" else f"'{place}', or another place with your clock"
    city = _of_city(wanted)
    return None if city is None else f"'{city}'"


def _of_region(name: str) -> str | None:
    """Return a zone of an abbreviation, a country or a name of Windows."""
    found = _OF_WINDOWS.fullmatch(name)
    of_windows = WINDOWS.get(found[1] or found[2]) if found is not None else None
    return ABBREVIATED.get(name) or of_windows or PLACES.get(name) or _of_country(name)


def _of_country(name: str) -> str | None:
    """Return the first zone of a country, by its English name."""
    import pytz

    codes = (code for code, known in pytz.country_names.items() if known.lower() == name)
    zones: list[str] = next((pytz.country_timezones.get(code, []) for code in codes), [])
    return zones[0] if zones else None


def _of_city(wanted: str) -> str | None:
    """Return the zone whose city is written like that of `wanted`; its region counts less."""
    region, _, city = wanted.rpartition("/")
    by_city = _by_city()
    key = _letters(city)
    # Short names are alike by chance: CEST is not EST.
    alike = difflib.get_close_matches(key, by_city, 1, ALIKE) if len(key) > 4 else []
    found = [key] if key in by_city else alike
    if not found:
        return PLACES.get(city.replace("_", " "))
    if found[0] != key and city.replace("_", " ") in PLACES:
        return PLACES[city.replace("_", " ")]
    return max(by_city[found[0]], key=lambda zone: zone.lower().startswith(f"{region}/"))


def _letters(city: str) -> str:
    """Return the letters of a city alone, without accents."""
    parts = unicodedata.normalize("NFKD", city.replace("\u0131", "i"))
    return "".join(char for char in parts if char.isascii() and char.isalnum())


@cache
def _spelled() -> dict[str, str]:
    import pytz

    return {known.lower(): known for known in pytz.all_timezones}


@cache
def _by_city() -> dict[str, list[str]]:
    """Return the zones of each city, those in use first."""
    import pytz

    found: dict[str, list[str]] = {}
    for zone in [*pytz.common_timezones, *pytz.all_timezones]:
        _, slash, city = zone.lower().rpartition("/")
        # What has a number is an offset, or a rule such as EST5EDT.
        if slash and not any(char.isdigit() for char in city):
            found.setdefault(_letters(city), []).append(zone)
    return found


def _at_offset(sign: str, hours: str, minutes: str | None) -> str | None:
    """Return the zone of a whole-hour offset from UTC; POSIX names it by the opposite sign."""
    if minutes not in (None, "00"):
        place = BETWEEN_HOURS.get(f"{sign}{int(hours)}:{minutes}")
        return None if place is None else f"'{place}', a place with that offset"
    if int(hours) == 0:
        return "'UTC'"
    known = _spelled().get(f"etc/gmt{'-' if sign == '+' else '+'}{int(hours)}")
    if known is None:
        return None
    place = AT_OFFSET.get(f"{sign}{int(hours)}", "Europe/Paris")
    return (
        f"'{known}' (UTC{sign}{int(hours)}: its name has the opposite sign), or a place such as "
        f"'{place}', where the clock changes"
    )
