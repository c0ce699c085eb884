"""Celery's schedules as JSON holds them."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from minutebook.json_values import shown

FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
# A class of django-celery-beat: it adds a zone, which Celery's own engine is asked for.
WITH_A_ZONE = "django_celery_beat.tzcrontab.TzAwareCrontab"
# A class of RedBeat, with the arguments of dateutil's `rrule`. It reads instants in UTC offsets.
RECURRENCE = "redbeat.schedules.rrule"
PARTS = (
    *("freq", "dtstart", "interval", "wkst", "count", "until", "bysetpos", "bymonth"),
    *("bymonthday", "byyearday", "byeaster", "byweekno", "byweekday"),
    *("byhour", "byminute", "bysecond"),
)
MINUTE = dt.timedelta(minutes=1)


def described(app: Any, given: Any, *, relative: bool) -> dict[str, Any]:
    """Return the schedule of an entry; `other` shows what only its own code understands.

    Raises ValueError for a schedule that does not go by the time.
    """
    from celery import schedules

    if not _is_schedule(given):
        return {"other": shown(given)}
    schedule: Any = schedules.maybe_schedule(given, relative, app=app)
    _check_clock(schedule)
    kind = type(schedule)
    if kind is schedules.crontab or class_name(kind) == WITH_A_ZONE:
        fields = {name: _field(schedule, name) for name in FIELDS}
        return {"crontab": fields, "timezone": zone_name(_zone_of(schedule))}
    if kind is schedules.solar:
        return {"solar": {"event": schedule.event, "lat": schedule.lat, "lon": schedule.lon}}
    if class_name(kind) == RECURRENCE:
        return {"rrule": {name: _part(getattr(schedule, name)) for name in PARTS}}
    if kind is schedules.schedule:
        found: dict[str, Any] = {"every_s": schedule.run_every.total_seconds()}
        return {**found, "relative": True} if schedule.relative else found
    return {"other": class_name(kind)}


def meaning(app: Any, given: Any) -> Any:
    """Return what a schedule means: crontabs that are written otherwise may mean the same."""
    from celery.schedules import crontab

    found = described(app, given, relative=False)
    if isinstance(given, crontab):
        return {**found, "crontab": [sorted(getattr(given, name)) for name in FIELDS]}
    return found


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


def _is_schedule(given: Any) -> bool:
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
    """Return the name of a zone of zoneinfo, pytz or datetime."""
    return str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone)


def class_name(kind: type) -> str:
    """Return the full name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"
