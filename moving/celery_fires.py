"""When Celery's own engine runs a schedule: beat's loop, on a clock that is given."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

from celery.schedules import schedule

from cron.zone import canonical_name, zone_named
from minutebook.beat.instants import Ran, of_schedule
from models.values.delays import rounded_up
from moving.celery_rules import Crontab, engine_of
from moving.entries import Known

NOTHING = timedelta(0)
SECOND = timedelta(seconds=1)
# Beat asks again after this span at the latest (beat_max_loop_interval), which matters
# only where the clocks change.
ASKED_WITHIN = timedelta(minutes=5)
# A change is felt at once: Celery counts from the offset of the instant at which it is asked.
AROUND = timedelta(minutes=90)
# By more than any zone's clock changes: estimates of what is due are wrong by less.
LARGEST_CHANGE = timedelta(hours=25)


@dataclass(frozen=True, slots=True)
class CrontabFires:
    """A crontab as beat runs it."""

    crontab: Crontab

    def between(self, since: datetime, until: datetime) -> Sequence[datetime]:
        """Return the instants in (since, until] at which beat sends, if it last did at `since`."""
        engine: Any = engine_of(self.crontab.fields)
        clock = SimpleNamespace(now=since)
        engine.app = _app_in(self.crontab.zone)
        engine.nowfun = lambda: clock.now
        changes = changes_between([self.crontab.zone], since - AROUND, until + AROUND)
        last, found = since, []
        while clock.now <= until:
            left = engine.remaining_estimate(last)
            if left > NOTHING:
                asked, is_due = _asked_next(clock.now, left, changes)
                clock.now = asked
                if not is_due or asked > until:
                    continue
            if clock.now > since:
                found.append(clock.now)
            last = clock.now
            clock.now += SECOND
        return found


def known_crontab(crontab: Crontab, ran: Ran, as_of: datetime) -> Known:
    """Return when beat runs a crontab next, by Celery's own engine."""
    return _known(engine_of(crontab.fields), crontab.zone, ran, as_of)


def known_interval(every: timedelta, zone: str, ran: Ran, as_of: datetime) -> Known:
    """Return when beat runs an interval next, by Celery's own engine."""
    return _known(schedule(every), zone, ran, as_of)


def _known(engine: Any, zone: str, ran: Ran, as_of: datetime) -> Known:
    engine.app = app = _app_in(zone)
    return Known(tuple(of_schedule(engine, app, ran, as_of)), as_of)


def _app_in(zone: str) -> Any:
    """Return what Celery's schedules ask of an application."""
    conf = SimpleNamespace(enable_utc=True, beat_cron_starting_deadline=None)
    return SimpleNamespace(timezone=ZoneInfo(canonical_name(zone)), conf=conf)


def changes_between(zones: Iterable[str], since: datetime, until: datetime) -> list[datetime]:
    """Return the clock changes of zones in (since, until], ascending, in UTC."""
    first, last = since.timestamp(), until.timestamp()
    starts = {
        stretch.start
        for zone in zones
        for stretch in zone_named(zone).wildcard
        if first < stretch.start <= last
    }
    return [datetime.fromtimestamp(start, UTC) for start in sorted(starts)]


def _asked_next(
    now: datetime, left: timedelta, changes: Sequence[datetime]
) -> tuple[datetime, bool]:
    """Return when to ask next, in whole seconds, and whether the schedule is due then for certain.

    It is due `left` from `now`, unless the clock changes about then or before: then it is asked as
    often as beat asks, but for what is due so long after a change that no answer before matters.
    """
    near = next((at for at in changes if at + AROUND > now), None)
    if near is None or now + left <= near - AROUND:
        return rounded_up(now + left), True
    if now + left > near + AROUND + LARGEST_CHANGE:
        return rounded_up(near + AROUND), False
    is_around = now >= near - AROUND
    return rounded_up(now + min(left, ASKED_WITHIN) if is_around else near - AROUND), False
