"""The next instants at which beat sends an entry, by the `is_due` of its own schedule.

It is beat's loop on a clock that is given. Nothing is sent, and nothing is stored.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

COUNT = 5
EPOCH = dt.datetime(1970, 1, 2, tzinfo=dt.timezone.utc)
# How late a scheduler that runs may be recorded: beat writes what it has done every three minutes.
RECORDED_WITHIN = dt.timedelta(minutes=5)
SECOND = dt.timedelta(seconds=1)
# Beat asks again after this span at the latest (beat_max_loop_interval), which matters only where
# the clocks change: Celery may count from the offset of the instant at which it is asked.
ASKED_WITHIN = dt.timedelta(minutes=5)
AROUND = dt.timedelta(minutes=90)
# Five leap days lie within it.
FURTHEST = dt.timedelta(days=300 * 366)
MOST_ASKED = 1_000


class Ran(NamedTuple):
    """What a scheduler has done: when it last ran an entry, and when it looks at it next."""

    last_run_at: dt.datetime | None = None
    due_at: dt.datetime | None = None


# What beat asks: whether an entry that last ran then is due now, and when to ask again, in seconds.
IsDue = Callable[[dt.datetime, dt.datetime], "tuple[bool, float | None]"]


def next_instants(is_due: IsDue, zone: dt.tzinfo, ran: Ran, now: dt.datetime) -> list[dt.datetime]:
    """Return the next instants from `now` on, at most five, in whole seconds.

    The first is `now` itself if the entry is overdue. If nothing is known of it, it has just run.
    """
    now = rounded_up(now)
    recorded = now - RECORDED_WITHIN
    last = ran.last_run_at or (now if ran.due_at is None else EPOCH)
    clock = rounded_up(max(ran.due_at or last, recorded))
    found: list[dt.datetime] = []
    for _ in range(MOST_ASKED):
        is_now, wait_s = is_due(last, clock)
        if is_now:
            # It was due before its run could have been recorded.
            last = now if clock == recorded else clock
            found += [last] if last > now or clock == recorded else []
            clock, wait_s = last, 1
        if len(found) == COUNT or wait_s is None or clock > now + FURTHEST:
            break
        clock = _asked_next(clock, wait_s, zone)
    return found


def _asked_next(clock: dt.datetime, wait_s: float, zone: dt.tzinfo) -> dt.datetime:
    """Return when beat is asked next: at once, if the clocks do not change until then."""
    wait = dt.timedelta(seconds=min(wait_s, FURTHEST.total_seconds()))
    if _offset(clock - AROUND, zone) != _offset(clock + wait + AROUND, zone):
        wait = wait / 2 if wait > 2 * AROUND else min(wait, ASKED_WITHIN)
    return max(rounded_up(clock + wait), clock + SECOND)


def _offset(at: dt.datetime, zone: dt.tzinfo) -> dt.timedelta | None:
    return at.astimezone(zone).utcoffset()


def of_entry(entry: Any, app: Any, ran: Ran, now: dt.datetime) -> list[dt.datetime]:
    """Return the next instants of an entry of beat: its own `is_due` is asked."""
    # Its own way to be copied is to be made anew, without its application.
    its = object.__new__(type(entry))
    vars(its).update(vars(entry))
    with set_clock(its.schedule, app) as (set_to, zone):

        def is_due(last: dt.datetime, at: dt.datetime) -> tuple[bool, float | None]:
            set_to(at)
            its.at, its.last_run_at = at.astimezone(app.timezone), last.astimezone(app.timezone)
            due, wait_s = its.is_due()
            return due, wait_s

        return next_instants(is_due, zone, ran, now)


def counts_by_the_wall(app: Any) -> bool:
    """Whether an interval is another span where the clocks of the application's zone change.

    Celery counted intervals so until 5.7: one of a day keeps its time of the day.
    """
    from celery import VERSION

    fortnights = (app.now() + number * dt.timedelta(days=14) for number in range(26))
    offsets = {_offset(at, app.timezone) for at in fortnights}
    return tuple(VERSION[:2]) < (5, 7) and len(offsets) > 1


@contextmanager
def set_clock(schedule: Any, app: Any) -> Iterator[tuple[Callable[[dt.datetime], None], dt.tzinfo]]:
    """Give a schedule a clock: yield what sets it, and the zone in which it shows the time."""
    own = schedule.nowfun
    shown: dt.tzinfo | None = app.timezone if own is None else own().tzinfo
    said: list[dt.datetime] = []

    def set_to(at: dt.datetime) -> None:
        local = at.astimezone(shown or dt.timezone.utc)
        said[:] = [local if shown else local.replace(tzinfo=None)]

    schedule.nowfun = lambda: said[0]
    try:
        yield set_to, getattr(schedule, "tz", None) or shown or dt.timezone.utc
    finally:
        schedule.nowfun = own


def rounded_up(at: dt.datetime) -> dt.datetime:
    """Return an instant in UTC in whole seconds, rounded up."""
    whole = at.astimezone(dt.timezone.utc)
    return whole if not whole.microsecond else whole.replace(microsecond=0) + SECOND
