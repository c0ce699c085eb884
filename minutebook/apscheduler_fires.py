"""The next instants of a job of APScheduler 3, by its own trigger. Nothing runs."""

from __future__ import annotations

import datetime as dt
from typing import Any

from minutebook.beat.instants import COUNT, RECORDED_WITHIN, rounded_up

MICROSECOND = dt.timedelta(microseconds=1)
# A user's own trigger may need its process, and one of several at once may search without an end.
ASKED = ("CronTrigger", "IntervalTrigger", "CalendarIntervalTrigger", "DateTrigger")


def utc_now() -> dt.datetime:
    """Return the time of this machine, as APScheduler takes it."""
    return dt.datetime.now(dt.timezone.utc)  # noqa: TID251 - of an application's environment


def is_asked(trigger: Any) -> bool:
    """Whether a trigger is one of APScheduler's own that finds its next instant soon.

    One with a jitter is not asked: its next instant is already drawn at random.
    """
    if getattr(trigger, "jitter", None):
        return False
    if type(trigger).__name__ == "OrTrigger":
        return all(map(is_asked, trigger.triggers))
    return type(trigger).__name__ in ASKED


def next_fires(
    trigger: Any, next_run_time: dt.datetime | None, now: dt.datetime, grace_s: int | None
) -> list[dt.datetime]:
    """Return the next instants of a job from `now` on, at most five, in whole seconds.

    A `next_run_time` that is past is run at `now`, if it is at most `grace_s` late.
    """
    at = next_run_time or trigger.get_next_fire_time(None, now)
    found: list[dt.datetime] = []
    if at is not None and at < now - RECORDED_WITHIN:
        is_run = grace_s is None or now - at <= dt.timedelta(seconds=grace_s)
        found += [rounded_up(now)] if is_run else []
    at = _from_now_on(trigger, at, now)
    while at is not None and len(found) < COUNT:
        found += [rounded_up(at)] if rounded_up(at) not in found else []
        # In UTC: Python's arithmetic forgets which of two equal wall-clock times is meant.
        at = trigger.get_next_fire_time(at, at.astimezone(dt.timezone.utc) + MICROSECOND)
    return found


def _from_now_on(trigger: Any, at: dt.datetime | None, now: dt.datetime) -> dt.datetime | None:
    """Return the first instant after `now`: an interval counts from the last one."""
    if at is None or at > now:
        return at
    if type(trigger).__name__ == "IntervalTrigger":
        at += ((now - at) // trigger.interval) * trigger.interval
        return trigger.get_next_fire_time(at, now)  # type: ignore[no-any-return]
    if type(trigger).__name__ == "DateTrigger":
        return None
    found = trigger.get_next_fire_time(None, now + MICROSECOND)
    # One of calendar intervals begins with its first date, even if that is past.
    while found is not None and found <= now:
        found = trigger.get_next_fire_time(found, now)
    return found  # type: ignore[no-any-return]
