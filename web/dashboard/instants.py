"""Instants as the fields of a form hold them: on the clock of the viewer's zone, without offset."""

from zoneinfo import ZoneInfo

from models.values import format_instant, parse_instant


def in_zone(text: str, zone: str) -> str:
    """Return the instant in a field; without an offset it is read in the viewer's zone.

    Text that is not an instant stays as it was written; its reader then reports the error.
    """
    try:
        return format_instant(parse_instant(text, zone))
    except ValueError:
        return text


def as_field(text: str, zone: str) -> str:
    """Return an instant as a field `datetime-local` takes it; empty for another text."""
    try:
        at = parse_instant(text, zone)
    except ValueError:
        return ""
    return at.astimezone(ZoneInfo(zone)).replace(tzinfo=None).isoformat(timespec="seconds")
