"""The first look of a tick; what a clock that ran ahead had decided is undone."""

import json
import logging
from datetime import datetime, timedelta

import sqlalchemy as sa

from models.store import clock_steps, notices, ticks
from models.store.operations import backfills, outbox
from models.store.ticks import Found
from runtime.database import unhurried
from scheduler.events.decide import MOST_BETWEEN_TICKS
from scheduler.events.tick import withdraw_what_lies_ahead
from scheduler.missed_spans import wind_back
from scheduler.sweep import Sweeper

logger = logging.getLogger("minutehand.tick")

CLOCK_WAS_WRONG = timedelta(minutes=5)


def look(engine: sa.Engine, at: datetime | None, sweeper: Sweeper) -> tuple[Found, float]:
    """Return what there is to do, and by how many seconds the clock was set back since last time.

    `at` None is the database's clock. A jump forward is downtime.
    """
    spans = (sweeper.lease, sweeper.overdue)
    set_back_s = 0.0
    with unhurried(engine) as connection:
        # Its `now` is read here, not before: a daemon that was frozen in between would hold an old
        # one against the ticks of another, and take the clock for set back.
        found = ticks.look(connection, at, *spans)
        now = found.now
        if found.last_now is not None and _set_right(connection, found.last_now, now):
            set_back_s = max(0.0, (found.last_now - now).total_seconds())
            found = ticks.look(connection, now, *spans)
        ticks.set_fact(connection, ticks.LAST_NOW, now.isoformat())
    return found, set_back_s


def _set_right(connection: sa.Connection, last_now: datetime, now: datetime) -> bool:
    """Put right what a clock that was wrong did to the cursors; False if there was nothing."""
    if now < last_now - CLOCK_WAS_WRONG:
        _undo_what_lies_ahead(connection, now, (last_now - now).total_seconds())
        return True
    if now < last_now:
        clock_steps.begin_events(connection, now)
        return False
    if now <= last_now + CLOCK_WAS_WRONG or not _is_right_again(connection, last_now, now):
        return False
    moved = clock_steps.come_back(connection, last_now, now)
    logger.warning("the clock was behind: %d actions begin at their last change again", moved)
    return True


def _is_right_again(connection: sa.Connection, last_now: datetime, now: datetime) -> bool:
    """Whether the clock made up for its last step back: no outage is as long but by chance."""
    fact = ticks.fact(connection, ticks.CLOCK_SET_BACK)
    if fact is None:
        return False
    jumped = now - last_now
    back = timedelta(seconds=json.loads(fact)["seconds"])
    return back <= jumped <= back + MOST_BETWEEN_TICKS


def _undo_what_lies_ahead(connection: sa.Connection, now: datetime, seconds: float) -> None:
    # Before the cursors: events are decided anew from the first span that is withdrawn.
    withdraw_what_lies_ahead(connection, now)
    moved = wind_back(connection, now)
    set_back = {"at": now.isoformat(), "seconds": seconds}
    ticks.set_fact(connection, ticks.CLOCK_SET_BACK, json.dumps(set_back))
    outbox.release_after_clock(connection, CLOCK_WAS_WRONG)
    notices.release_after_clock(connection)
    backfills.release_after_clock(connection)
    logger.warning(
        "the clock went back by %s: %d actions are decided anew from %s on",
        timedelta(seconds=seconds),
        moved,
        now.isoformat(),
    )
