"""The first look of a tick; what a clock that ran ahead had decided is undone."""

import json
import logging
from datetime import datetime, timedelta

import sqlalchemy as sa

from models.store import notices, ticks
from models.store.actions import cursors
from models.store.operations import backfills, outbox
from models.store.ticks import Found
from runtime.database import unhurried
from scheduler.events.tick import withdraw_what_lies_ahead
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
        if found.last_now is not None and now < found.last_now - CLOCK_WAS_WRONG:
            set_back_s = (found.last_now - now).total_seconds()
            _undo_what_lies_ahead(connection, now, set_back_s)
            found = ticks.look(connection, now, *spans)
        ticks.set_fact(connection, ticks.LAST_NOW, now.isoformat())
    return found, set_back_s


def _undo_what_lies_ahead(connection: sa.Connection, now: datetime, seconds: float) -> None:
    # Before the cursors: their spans are decided anew in one piece.
    withdraw_what_lies_ahead(connection, now)
    moved = cursors.wind_back(connection, now)
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
