"""Read the work of a tick, and undo decisions made while the clock was ahead."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from models.sql import read_clock
from models.store import clock_steps, key_values, notices, tick_work, ticks
from models.store.operations import backfills, reserve
from models.store.tick_work import Found
from models.store.ticks import CLOCK_WAS_WRONG
from models.stored import instant_in
from runtime.database import give_way, unhurried
from runtime.logs.events import EventLog
from scheduler import downtime
from scheduler.decision import MOST_BETWEEN_TICKS
from scheduler.downtime import LONGEST_GAP
from scheduler.events.tick import withdraw_what_lies_ahead
from scheduler.sweep import Sweeper
from scheduler.systemd_notify import ALIVE, notify

logger = EventLog("minutebook.tick")

MOST_RELEASED = 10_000


def look(
    engine: sa.Engine, at: datetime | None, sweeper: Sweeper, longest_gap: timedelta = LONGEST_GAP
) -> Found:
    """Return the work to do, after undoing what a clock that was ahead decided.

    If `at` is None, the database's clock decides. A jump forward is downtime.
    """
    first = found = _look(engine, at, sweeper, longest_gap)
    set_back_s = found.set_back_s
    while found.has_to_wind_back:
        _wind_back(engine, at)
        # It takes a while, in which the clock may jump again.
        found = _look(engine, at, sweeper, longest_gap)
        set_back_s = max(set_back_s, found.set_back_s)
    was_down = first.was_down or found.was_down
    return replace(found, last_now=first.last_now, set_back_s=set_back_s, was_down=was_down)


def _look(
    engine: sa.Engine, at: datetime | None, sweeper: Sweeper, longest_gap: timedelta
) -> Found:
    """Return the work to do; what is noticed about the clock and noted of it is one transaction."""
    spans = (sweeper.lease, sweeper.overdue)
    set_back_s = 0.0
    with unhurried(engine) as connection:
        # `now` is read here: a daemon that was frozen after an earlier reading would compare an old
        # value with another daemon's ticks and conclude that the clock was set back.
        found = tick_work.look(connection, at, *spans)
        now, last_now = found.now, found.last_now
        if last_now is not None and _jumped(last_now, now):
            # Another daemon that sees the same jump waits here, and then finds it corrected.
            last_now = ticks.hold_last_now(connection)
            if last_now is not None and _set_right(connection, last_now, now):
                set_back_s = max(0.0, (last_now - now).total_seconds())
                found = tick_work.look(connection, now, *spans)
        was_down = downtime.note(connection, last_now, now, longest_gap)
        key_values.set_value(connection, key_values.LAST_NOW, now.isoformat())
    return replace(found, set_back_s=set_back_s, was_down=was_down)


def _jumped(last_now: datetime, now: datetime) -> bool:
    return not last_now <= now <= last_now + CLOCK_WAS_WRONG


def _set_right(connection: sa.Connection, last_now: datetime, now: datetime) -> bool:
    """Correct cursors after a wrong clock; return False if nothing changed."""
    if now < last_now - CLOCK_WAS_WRONG:
        _begin_to_wind_back(connection, now, last_now - now)
        return True
    if now < last_now:
        clock_steps.begin_events(connection, now)
        return False
    if now <= last_now + CLOCK_WAS_WRONG or not _is_right_again(connection, last_now, now):
        return False
    moved = clock_steps.come_back(connection, last_now, now)
    logger.warning(
        "clock_was_behind",
        "the clock was behind: {actions} actions begin again at their last change",
        moved,
    )
    return True


def _is_right_again(connection: sa.Connection, last_now: datetime, now: datetime) -> bool:
    """Return whether the clock made up for its last step back; an outage rarely has that length."""
    set_back = key_values.clock_set_back(connection)
    if set_back is None:
        return False
    jumped, (_, back) = now - last_now, set_back
    return back <= jumped <= back + MOST_BETWEEN_TICKS


def _begin_to_wind_back(connection: sa.Connection, now: datetime, by: timedelta) -> None:
    """Note that cursors lie ahead of the clock; once committed, no tick decides before all is done.

    Ticks that began by the wrong clock end then. A killed daemon leaves the rest to the next tick.
    """
    # Before the cursors: events are decided again from the first withdrawn span on.
    withdraw_what_lies_ahead(connection, now)
    set_back = {"at": now.isoformat(), "seconds": by.total_seconds()}
    key_values.set_value(connection, key_values.CLOCK_SET_BACK, json.dumps(set_back))
    key_values.set_value(connection, key_values.WINDING_BACK, now.isoformat())
    logger.warning(
        "clock_set_back",
        "the clock went back by {by}: all is decided again from {since} on",
        by,
        now,
    )


def _wind_back(engine: sa.Engine, at: datetime | None) -> None:
    """Reset what lies ahead of the clock, some at a time; daemons that do so together share it."""
    _release_all(engine)
    count = 0
    while some := _wind_back_some(engine, at):
        count += some
        _go_on(engine)
    logger.info("actions_wound_back", "{actions} actions are wound back to the clock", count)


def _go_on(engine: sa.Engine) -> None:
    # A million actions take longer than a watchdog waits.
    notify(ALIVE)
    give_way(engine)


def _release_all(engine: sa.Engine) -> None:
    """Release what waits for the wrong clock."""
    with engine.begin() as connection:
        notices.release_after_clock(connection)
        backfills.release_after_clock(connection)
    place = None
    while True:
        with engine.begin() as connection:
            place = reserve.release_after_clock(connection, CLOCK_WAS_WRONG, MOST_RELEASED, place)
        if place is None:
            return
        _go_on(engine)


def _wind_back_some(engine: sa.Engine, at: datetime | None) -> int:
    """Wind some actions back and return how many; if none is left, note that all is done.

    Those that lie ahead now, to the instant at which the clock was found back: actions that were
    made or changed since then do not lie ahead, and what was due since then is not missed.
    """
    with engine.begin() as connection:
        stored = key_values.hold_value(connection, key_values.WINDING_BACK)
        if stored is None:
            # Another daemon did the rest.
            return 0
        now = at or read_clock(connection)
        ahead = clock_steps.hold_ahead(connection, now)
        if ahead:
            clock_steps.wind_back(connection, min(now, instant_in(stored) or now), ahead)
        else:
            key_values.remove_value(connection, key_values.WINDING_BACK)
        return len(ahead)
