"""When APScheduler's own triggers fire, where it is installed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any

from cron.zone import canonical_name
from models.values.delays import rounded_up

MICROSECOND = timedelta(microseconds=1)
NOT_COMPARED = "its instants were not compared: APScheduler 3 is not installed beside Minutebook"


def is_engine_here() -> bool:
    """Return whether APScheduler 3 can be imported: release 4 has no such triggers."""
    return (
        find_spec("apscheduler") is not None and find_spec("apscheduler.triggers.base") is not None
    )


@dataclass(frozen=True, slots=True)
class TriggerFires:
    """A trigger as a scheduler that never stops runs it, at full seconds."""

    trigger: Mapping[str, Any]

    def between(self, since: datetime, until: datetime) -> Sequence[datetime]:
        """Return the instants in (since, until], each rounded up to a full second."""
        engine = engine_of(self.trigger)
        found: list[datetime] = []
        at = engine.get_next_fire_time(None, since + MICROSECOND)
        while at is not None and (last := rounded_up(at)) <= until and last not in found[-1:]:
            found.append(last)
            # In UTC: Python's arithmetic forgets which of two equal wall-clock times is meant.
            at = engine.get_next_fire_time(at, at.astimezone(UTC) + MICROSECOND)
        return found


def engine_of(trigger: Mapping[str, Any]) -> Any:
    """Return APScheduler's own trigger, without jitter."""
    kinds: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
        "cron": _cron,
        "interval": _interval,
        "calendar": _calendar,
        "date": _date,
        "or": _any_of,
    }
    return kinds[trigger["type"]](trigger)


def _bounds(trigger: Mapping[str, Any]) -> dict[str, Any]:
    names = ("start_date", "end_date")
    return {name: datetime.fromisoformat(trigger[name]) for name in names if trigger.get(name)}


def _cron(trigger: Mapping[str, Any]) -> Any:
    from apscheduler.triggers.cron import CronTrigger

    zone = canonical_name(trigger["timezone"])
    return CronTrigger(**trigger["fields"], timezone=zone, **_bounds(trigger))


def _interval(trigger: Mapping[str, Any]) -> Any:
    from apscheduler.triggers.interval import IntervalTrigger

    return IntervalTrigger(seconds=trigger["seconds"], timezone="UTC", **_bounds(trigger))


def _calendar(trigger: Mapping[str, Any]) -> Any:
    from apscheduler.triggers.calendarinterval import CalendarIntervalTrigger

    interval = dict(zip(("years", "months", "weeks", "days"), trigger["interval"], strict=True))
    clock = dict(zip(("hour", "minute", "second"), trigger["time"], strict=True))
    bounds = {name: trigger.get(name) for name in ("start_date", "end_date")}
    zone = canonical_name(trigger["timezone"])
    return CalendarIntervalTrigger(**interval, **clock, timezone=zone, **bounds)


def _date(trigger: Mapping[str, Any]) -> Any:
    from apscheduler.triggers.date import DateTrigger

    return DateTrigger(datetime.fromisoformat(trigger["run_date"]), timezone="UTC")


def _any_of(trigger: Mapping[str, Any]) -> Any:
    from apscheduler.triggers.combining import OrTrigger

    return OrTrigger([engine_of(one) for one in trigger["triggers"]])
