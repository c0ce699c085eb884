"""Foresee what the next decision about an action will be, and what is due after that.

A change records what is foreseen, its plan shows it, and `explain` and previews answer by it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import reduce
from operator import add
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.store import key_values
from models.store.people import events
from models.store.people.events import Range
from models.store.tenants.closing import closing
from models.values.delays import due_after, events_due
from scheduler.decision import Decision, EventWindow, Occurrence, decisions, occurrence_of
from scheduler.events import Watched, decided_by_events, watched_of
from scheduler.from_end import counted
from scheduler.occurrence import next_occurrences
from scheduler.record import State

# No event is awaited for longer.
HORIZON = timedelta(days=3_660)
MOST_READ = 200


def forecast(
    connection: sa.Connection, state: State, since: datetime, now: datetime
) -> Iterator[Decision]:
    """Yield the decisions about (since, now] that a tick or a change at `now` will record.

    The plan has its calendars. All about events are one. Their window reaches back to those that
    became known late, and those that have an operation are left out.
    """
    if state.plan.on_event is None:
        plan = counted(connection, (state.plan, state.action.uid), now)
        yield from decisions(plan, state.action.uid, since, now)
    elif state.plan.active:
        watched = watch(connection, state, now)
        found = [one.decision for some in decided_by_events(connection, [watched]) for one in some]
        if found:
            yield reduce(add, found)


def watch(connection: sa.Connection, state: State, now: datetime) -> Watched:
    """Return an event action with the window in which its events are decided at `now`."""
    return watched_of(state, now, key_values.instant_value(connection, key_values.EVENTS_DECIDED))


def on_its_way_since(connection: sa.Connection, state: State, now: datetime) -> datetime:
    """Return the instant after which due events may still become known in time."""
    watched = watch(connection, state, now)
    return max(state.effective_from, watched.window.late_until)


def coming(
    connection: sa.Connection, whose: tuple[int, UUID], plan: Plan, now: datetime, count: int
) -> list[Occurrence]:
    """Return up to `count` occurrences after `now`, ascending, active or not.

    `whose` is the small app and the action. Only the first 200 events are read: a filter that keeps
    few users may show fewer.
    """
    if plan.on_event is None:
        plan = closing(connection, counted(connection, (plan, whose[1]), now), whose[0])
        return [Occurrence(at) for at in next_occurrences(plan, whose[1], now, count)]
    due = _known_in(connection, whose, plan, EventWindow(now, now + HORIZON, late_until=now))
    return sorted(due, key=lambda one: (one.at, one.subject or ""))[:count]


def _known_in(
    connection: sa.Connection, whose: tuple[int, UUID], plan: Plan, window: EventWindow
) -> Iterator[Occurrence]:
    small_app_id, uid = whose
    rule = plan.on_event
    if rule is None:
        return
    happened = events_due(window.since, window.until, rule.lag)
    if happened is None:
        return
    known = events.next_in(connection, Range(0, small_app_id, rule.event, *happened), MOST_READ)
    if known and plan.selects_by_groups:
        known = events.with_groups(connection, small_app_id, known)
    for one in known:
        due = occurrence_of((plan, uid), one, due_after(one.at, rule.lag), window)
        if due is not None:
            yield due
