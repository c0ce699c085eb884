"""Celery's schedules as JSON holds them."""

from __future__ import annotations

import datetime as dt
import math
import os
from typing import Any

FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
# Classes of django-celery-beat: one adds a zone, which Celery's own engine is asked for.
WITH_A_ZONE = "django_celery_beat.tzcrontab.TzAwareCrontab"
CLOCKED = "django_celery_beat.clockedschedule.clocked"
# A class of RedBeat, with the arguments of dateutil's `rrule`. It reads instants in UTC offsets.
RECURRENCE = "redbeat.schedules.rrule"
PARTS = (
    *("freq", "dtstart", "interval", "wkst", "count", "until", "bysetpos", "bymonth"),
    *("bymonthday", "byyearday", "byeaster", "byweekno", "byweekday"),
    *("byhour", "byminute", "bysecond"),
)
MINUTE = dt.timedelta(minutes=1)
# In the paths of zones.
ZONES = "zoneinfo/"


def described(schedule: Any) -> dict[str, Any]:
    """Return the schedule of an entry; `other` names what only its own code understands.

    Raises ValueError for a schedule that does not go by the time.
    """
    from celery import schedules

    kind: Any = type(schedule)
    name = class_name(kind)
    _check_clock(schedule)
    if kind is schedules.schedule:
        found: dict[str, Any] = {"every_s": schedule.run_every.total_seconds()}
        return {**found, "relative": True} if schedule.relative else found
    if kind is schedules.crontab or name == WITH_A_ZONE:
        fields = {name: _field(schedule, name) for name in FIELDS}
        return {"crontab": fields, "timezone": zone_name(_zone_of(schedule))}
    if kind is schedules.solar:
        its: Any = schedule
        return {"solar": {"event": its.event, "lat": float(its.lat), "lon": float(its.lon)}}
    if name == RECURRENCE:
        return {"rrule": {name: _part(getattr(schedule, name)) for name in PARTS}}
    return {"clocked": _part(schedule.clocked_time)} if name == CLOCKED else {"other": name}


def _part(value: Any) -> Any:
    """Return a part of a recurrence rule: a number, an instant, a weekday, or a list of them."""
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, (list, tuple, set, range)):
        return [_part(one) for one in value]
    if hasattr(value, "weekday") and hasattr(value, "n"):
        day = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")[value.weekday]
        return f"{value.n}{day}" if value.n else day
    return value


def is_schedule(given: Any) -> bool:
    """Whether Celery takes a value for a schedule."""
    from celery.schedules import BaseSchedule

    if isinstance(given, (int, float)):
        return not isinstance(given, bool) and math.isfinite(given)
    return isinstance(given, (dt.timedelta, BaseSchedule))


def _check_clock(schedule: Any) -> None:
    """Raise ValueError if the schedule's `nowfun` says another time than the clock."""
    if schedule.nowfun is not None:
        said = schedule.maybe_make_aware(schedule.now())
        if abs(said - schedule.app.now()) > MINUTE:
            raise ValueError(f"its nowfun says {said.isoformat()}, which is not the time")


def _zone_of(crontab: Any) -> Any:
    """Return the zone of a crontab's fields: with a `nowfun` it is up to Celery's release."""
    if crontab.nowfun is None:
        return crontab.tz
    last_run_at, _, _ = crontab.remaining_delta(crontab.maybe_make_aware(crontab.now()))
    return last_run_at.tzinfo


def _field(schedule: Any, name: str) -> str:
    """Return a field as it was written; sets and lists as their values."""
    written = getattr(schedule, f"_orig_{name}", None)
    if isinstance(written, (str, int)):
        return str(written)
    return ",".join(str(one) for one in sorted(getattr(schedule, name)))


def zone_name(zone: Any) -> str:
    """Return the name of a zone of zoneinfo, pytz or datetime; of Celery's local one, too."""
    if type(zone).__name__ == "LocalTimezone":
        return os.environ.get("TZ", "").lstrip(":") or _zone_of_machine() or str(zone)
    return str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone)


def _zone_of_machine() -> str:
    """Return the zone that the machine's clock shows, empty if its file is no link."""
    path = os.path.realpath("/etc/localtime")
    return path.partition(ZONES)[2]


def class_name(kind: type) -> str:
    """Return the full name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"
