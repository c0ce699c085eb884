"""Recurrence rules of RedBeat (`redbeat.schedules.rrule`) as rules of an action."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from cron import InvalidRule
from cron.recurrence import read_recurrence
from cron.recurrent_days import RecurrentMinutes
from cron.zone import canonical_name
from interop.entries import CORRECT, CannotMove

FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
OF_DAYS = FREQUENCIES[:4]
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
# Parts of the other frequencies, by their names in RFC 5545.
LISTS = ("bysetpos", "bymonth", "bymonthday", "byyearday", "byweekno", "byhour", "byminute")
HOUR = timedelta(hours=1)
# How long a zone must keep an offset to stand for it.
KEPT = timedelta(days=731)


def rule_of(
    written: Mapping[str, Any], zone: str, as_of: datetime
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a recurrence rule as an action has it, and what differs; raises CannotMove.

    RedBeat keeps no zone but the offset of `dtstart`, which no clock change moves.
    """
    frequency, begins = _frequency(written.get("freq")), _instant(written.get("dtstart"))
    if frequency not in OF_DAYS:
        why = f"its rule is {frequency}, and one of an action is of whole days"
        raise CannotMove(why, "write an interval, or a cron rule")
    if written.get("byeaster") not in (None, [], ()):
        raise CannotMove("its rule has byeaster", "write a due date for each year")
    if any(_values(written, "bysecond")) or len(_values(written, "bysecond")) > 1:
        raise CannotMove("its rule has seconds (bysecond)", "write an interval")
    zone = _zone(begins, zone, as_of)
    wall = begins.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    second = 0 if _values(written, "bysecond") else wall.second
    left_out = (f"its seconds (:{second:02}) are left out",) if second else ()
    return _recurrence(";".join(_parts(frequency, written)), wall, zone), left_out


def _recurrence(text: str, wall: datetime, zone: str) -> dict[str, Any]:
    minute = wall.replace(second=0, microsecond=0)
    try:
        rule = read_recurrence(text)
        times = rule.times or [60 * wall.hour + wall.minute]
        RecurrentMinutes(rule, times, wall.date()).check()
    except InvalidRule as error:
        raise CannotMove(str(error), CORRECT) from None
    when = {"rrule": rule.text, "timezone": zone, "starting_at": minute.isoformat()}
    return when if rule.times else {**when, "at": f"{wall:%H:%M}"}


def _parts(frequency: str, written: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of a rule as RFC 5545 writes them."""
    begins = _instant(written.get("dtstart"))
    lists = {key: _values(written, key) for key in LISTS}
    # The hours and minutes of a rule are written together.
    if lists["byhour"] or lists["byminute"]:
        lists["byhour"] = lists["byhour"] or [begins.hour]
        lists["byminute"] = lists["byminute"] or [begins.minute]
    yield f"FREQ={frequency}"
    for key in ("interval", "count"):
        if written.get(key) is not None:
            yield f"{key.upper()}={_whole(key, written[key])}"
    if written.get("wkst") is not None:
        yield f"WKST={_weekday(written['wkst'])}"
    yield from (f"{key.upper()}={','.join(map(str, lists[key]))}" for key in LISTS if lists[key])
    if days := _list(written.get("byweekday")):
        yield f"BYDAY={','.join(map(_weekday, days))}"
    if written.get("until") is not None:
        yield f"UNTIL={_instant(written['until']).astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _zone(begins: datetime, zone: str, as_of: datetime) -> str:
    """Return a zone with the offset of an instant: the application's own if it keeps that."""
    offset = begins.utcoffset() or timedelta(0)
    own = ZoneInfo(canonical_name(zone))
    ahead = (as_of + KEPT * part / 12 for part in range(13))
    if all(at.astimezone(own).utcoffset() == offset for at in ahead):
        return zone
    hours, rest = divmod(offset, HOUR)
    if rest or not -12 <= hours <= 14:
        why = f"its dtstart has the offset {begins.isoformat()[-6:]}, which no zone keeps"
        raise CannotMove(why, "write a recurrence rule with your own zone")
    # Its signs are those of POSIX.
    return f"Etc/GMT{-hours:+}" if hours else "UTC"


def _frequency(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(FREQUENCIES):
        return FREQUENCIES[value]
    if str(value).upper() in FREQUENCIES:
        return str(value).upper()
    raise CannotMove(f"its freq {str(value)[:60]!r} is unknown", CORRECT)


def _instant(value: object) -> datetime:
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise CannotMove(f"{str(value)[:60]!r} is not an instant with an offset", CORRECT)
    return at.replace(microsecond=0)


def _values(written: Mapping[str, Any], key: str) -> list[int]:
    """Return the numbers of a part, none if it is absent; raises CannotMove."""
    return [_whole(key, one) for one in _list(written.get(key))]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _whole(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise CannotMove(f"its {key} {str(value)[:60]!r} is not a number", CORRECT)
    return value


def _weekday(value: object) -> str:
    """Return a weekday as RFC 5545 writes it: from a number, or from RedBeat's own object."""
    day = value.get("wkday") if isinstance(value, Mapping) else value
    if isinstance(day, int) and not isinstance(day, bool) and 0 <= day < len(WEEKDAYS):
        return WEEKDAYS[day]
    if isinstance(day, str) and day[-2:] in WEEKDAYS:
        return day
    raise CannotMove(f"its weekday {str(value)[:60]!r} is unknown", CORRECT)
