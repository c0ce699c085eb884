"""Preview the next users of an event action, and the actions an event is too late for."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import sqlalchemy as sa

from models.action.plan import EventTrigger, Plan
from models.store.people import events
from models.store.people.events import Happened, Range
from scheduler.events import counts, is_within, trigger_delay

# Read one after the other, until enough users are found.
HORIZONS = tuple(timedelta(days=days) for days in (0, 1, 7, 31, 366, 3_660))
MOST_READ = 200


def next_due(
    connection: sa.Connection, small_app_id: int, plan: Plan, now: datetime, count: int
) -> list[tuple[datetime, str | None]]:
    """Return up to `count` users with the instants after `now` at which they are due, ascending.

    An operation's end may be about no user. Only the first 200 events of each span are read: a
    filter that keeps few users may show fewer.
    """
    trigger = plan.on_event
    if trigger is None:
        return []
    found: list[tuple[datetime, str | None]] = []
    for since, until in pairwise(HORIZONS):
        if len(found) < count:
            window = (now + since, now + until)
            due = _due_in(connection, small_app_id, plan, trigger, window)
            found += sorted(due, key=lambda one: (one[0], one[1] or ""))
    return found[:count]


def too_late_for(
    connection: sa.Connection, small_app_id: int, event: str, at: datetime, now: datetime
) -> list[str]:
    """Return the names of active actions that miss an event at `at`, reported at `now`."""
    names = []
    for row in events.actions_on(connection, small_app_id, event):
        trigger = row.plan.on_event if isinstance(row.plan, Plan) else None
        due_at = trigger_delay(trigger).due(at) if trigger else None
        if trigger and due_at and row.effective_from < due_at <= now - trigger.look_back:
            names.append(row.name)
    return names


def _due_in(
    connection: sa.Connection,
    small_app_id: int,
    plan: Plan,
    trigger: EventTrigger,
    window: tuple[datetime, datetime],
) -> list[tuple[datetime, str | None]]:
    since, until = window
    delay = trigger_delay(trigger)
    found: list[tuple[datetime, str | None]] = []
    for begin, end in delay.instants(since, until):
        asked = Range(0, small_app_id, trigger.event, begin, end)
        for one in _read(connection, asked, trigger):
            due_at = delay.due(one.at)
            is_due = due_at is not None and since < due_at <= until and is_within(plan, due_at)
            if due_at and is_due and counts(trigger, one):
                found.append((due_at, one.subject))
    return found


def _read(connection: sa.Connection, asked: Range, trigger: EventTrigger) -> list[Happened]:
    found: list[Any] = events.next_in(connection, asked, MOST_READ)
    if not (found and trigger.subjects.groups):
        return found
    return events.with_groups(connection, asked.small_app_id, found)
