"""Prune old rows; each function deletes one batch and returns its size."""

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from models.action.plan import Plan, UnreadablePlan
from models.operation import ENDED
from models.sql import database_now, read_clock
from models.store.conditions import IS_ACTIVE_BACKFILL
from models.store.key_values import EVENTS_DECIDED, instant_value
from models.store.pauses import ENDS_AT
from models.tables import (
    action_cursor,
    action_ends,
    action_state,
    actions,
    attempts,
    backfills,
    deliveries,
    events,
    findings,
    missed_spans,
    notices,
    operation_logs,
    operations,
    pauses,
    ticks,
    workers,
)

HOUR_S = 3_600


def prune_operations(
    connection: sa.Connection, small_app_id: int, age: timedelta, limit: int
) -> int:
    """Delete ended operations older than `age`, with attempts, log lines and deliveries.

    An operation that a tick could decide again stays: after its active action's watermark, or, for
    an event, within the reach of a tick plus an hour, because its id prevents a second run. One in
    the range of an active backfill stays as well, because the backfill would run it as missing.
    """
    ended_at = sa.func.coalesce(operations.c.finished_at, operations.c.recorded_at)
    decided = sa.or_(
        operations.c.occurrence_at <= action_cursor.c.watermark,
        action_cursor.c.watermark.is_(None),
        ~actions.c.active,
    )
    is_of_event = operations.c.subject.is_not(None) | operations.c.event_at.is_not(None)
    is_being_filled = sa.exists().where(
        backfills.c.action_uid == operations.c.action_uid,
        IS_ACTIVE_BACKFILL,
        backfills.c.since < operations.c.occurrence_at,
        backfills.c.until >= operations.c.occurrence_at,
    )
    old = (
        sa.select(operations.c.id)
        .join(actions, actions.c.uid == operations.c.action_uid)
        .outerjoin(action_cursor, action_cursor.c.action_uid == operations.c.action_uid)
        .where(
            operations.c.small_app_id == small_app_id,
            operations.c.state.in_([state.value for state in ENDED]),
            # Every operation ends after it was recorded: the index finds the old ones.
            operations.c.recorded_at < database_now(-age),
            ended_at < database_now(-age),
            sa.not_(is_being_filled),
            sa.or_(
                actions.c.deleted_at.is_not(None),
                sa.and_(sa.not_(is_of_event), decided),
                sa.and_(is_of_event, _is_out_of_sight(connection)),
            ),
        )
        .limit(limit)
        # A retry of one of them waits, or keeps it.
        .with_for_update(of=operations, skip_locked=True)
    )
    ids = connection.execute(old).scalars().all()
    for table in (deliveries, attempts, operation_logs):
        connection.execute(sa.delete(table).where(table.c.operation_id.in_(ids)))
    connection.execute(sa.delete(operations).where(operations.c.id.in_(ids)))
    return len(ids)


def _is_out_of_sight(connection: sa.Connection) -> sa.ColumnElement[bool]:
    """Return the condition that no tick can decide an event's operation again.

    A paused action begins again when it is resumed.
    """
    behind_s = _events_behind_s(connection)
    begins_again = sa.or_(actions.c.event.is_(None), ~actions.c.active)
    if behind_s is None:
        return begins_again
    # After a downtime, a tick looks back from the last decided instant.
    reach_s = sa.cast(actions.c.look_back_s + HOUR_S, sa.Float) + behind_s
    return sa.or_(begins_again, operations.c.occurrence_at < database_now(-reach_s))


def _events_behind_s(connection: sa.Connection) -> float | None:
    """Return the age in seconds of the last decided instant of events; None before the first."""
    decided = instant_value(connection, EVENTS_DECIDED)
    if decided is None:
        return None
    return max(0.0, (read_clock(connection) - decided).total_seconds())


def prune_events(connection: sa.Connection, small_app_id: int, age: timedelta, limit: int) -> int:
    """Delete custom events older than `age` plus the longest delay and look-back.

    Those are of the small app's actions, paused ones included. If a plan is broken, all events
    stay.
    """
    kept_for = _kept_for(connection, small_app_id, age)
    if kept_for is None:
        return 0
    key = sa.tuple_(events.c.event, events.c.id)
    of_app = events.c.small_app_id == small_app_id
    old = sa.select(events.c.event, events.c.id).where(
        of_app, events.c.occurred_at < database_now(-kept_for)
    )
    return connection.execute(sa.delete(events).where(of_app, key.in_(old.limit(limit)))).rowcount


def prune_ends(connection: sa.Connection, small_app_id: int, age: timedelta, limit: int) -> int:
    """Delete ends of operations that raised events, as `prune_events` deletes custom events."""
    kept_for = _kept_for(connection, small_app_id, age)
    if kept_for is None:
        return 0
    its = action_ends.c
    old = (
        sa.select(its.action_uid, its.operation_id, its.state)
        .where(its.small_app_id == small_app_id, its.ended_at < database_now(-kept_for))
        .limit(limit)
    )
    key = sa.tuple_(its.action_uid, its.operation_id, its.state)
    return connection.execute(sa.delete(action_ends).where(key.in_(old))).rowcount


def _kept_for(connection: sa.Connection, small_app_id: int, age: timedelta) -> timedelta | None:
    """Return how long the events of a small app are kept; None for ever."""
    plans = sa.select(actions.c.plan).where(
        actions.c.small_app_id == small_app_id, actions.c.event.is_not(None)
    )
    behind_s = _events_behind_s(connection)
    waits = []
    for plan in connection.scalars(plans):
        if isinstance(plan, UnreadablePlan):
            return None
        waits.append(_longest_wait(plan))
    if waits and behind_s is None:
        return None
    return age + max(waits, default=timedelta(0)) + timedelta(seconds=behind_s or 0)


def _longest_wait(plan: Plan) -> timedelta:
    if plan.on_event is None:
        return timedelta(0)
    return plan.on_event.lag + plan.look_back_of(plan.on_event) + timedelta(days=1)


def prune_missed_spans(
    connection: sa.Connection, small_app_id: int, age: timedelta, limit: int
) -> int:
    """Delete missed spans that were recorded more than `age` ago."""
    old = (
        sa.select(missed_spans.c.id)
        .join(actions, actions.c.uid == missed_spans.c.action_uid)
        .where(
            actions.c.small_app_id == small_app_id,
            missed_spans.c.recorded_at < database_now(-age),
        )
        .limit(limit)
    )
    return _delete(connection, old)


def prune_backfills(
    connection: sa.Connection, small_app_id: int, age: timedelta, limit: int
) -> int:
    """Delete backfills that ended more than `age` ago."""
    # A row that has not ended has no finished_at.
    its = (backfills.c.small_app_id == small_app_id, backfills.c.finished_at < database_now(-age))
    return _delete(connection, sa.select(backfills.c.id).where(*its).limit(limit))


def prune_notices(connection: sa.Connection, small_app_id: int, age: timedelta, limit: int) -> int:
    """Delete notices of a small app, and of no small app, that ended more than `age` ago."""
    of_nobody = notices.c.small_app_id.is_(None)
    its = (notices.c.small_app_id == small_app_id) | of_nobody
    old = sa.select(notices.c.id).where(its, notices.c.finished_at < database_now(-age))
    return _delete(connection, old.limit(limit))


def prune_findings(connection: sa.Connection, age: timedelta, limit: int) -> int:
    """Delete findings of the whole installation that ended more than `age` ago."""
    old = sa.select(findings.c.id).where(findings.c.ended_at < database_now(-age)).limit(limit)
    return _delete(connection, old)


def prune_ticks(connection: sa.Connection, age: timedelta, limit: int) -> int:
    """Delete tick reports older than `age`, of the whole installation."""
    old = sa.select(ticks.c.id).where(ticks.c.finished_at < database_now(-age)).limit(limit)
    return _delete(connection, old)


def prune_pauses(connection: sa.Connection, age: timedelta, limit: int) -> int:
    """Delete pauses of the whole installation that ended more than `age` ago."""
    old = sa.select(pauses.c.id).where(database_now(-age) > ENDS_AT).limit(limit)
    return _delete(connection, old)


def prune_workers(connection: sa.Connection, age: timedelta, limit: int) -> int:
    """Delete workers of the whole installation last seen more than `age` ago."""
    gone = sa.select(workers.c.name).where(workers.c.seen_at < database_now(-age)).limit(limit)
    return _delete(connection, gone)


def prune_memories(connection: sa.Connection, small_app_id: int, age: timedelta, limit: int) -> int:
    """Delete the state of actions deleted more than `age` ago without open operations."""
    its_action = actions.c.uid == action_state.c.action_uid
    is_not_over = sa.exists().where(
        operations.c.action_uid == actions.c.uid, operations.c.state.not_in(ENDED)
    )
    key = (action_state.c.action_uid, action_state.c.subject)
    old = (
        sa.select(*key)
        .join(actions, its_action)
        .where(
            actions.c.small_app_id == small_app_id,
            actions.c.deleted_at < database_now(-age),
            sa.not_(is_not_over),
        )
        .limit(limit)
    )
    return connection.execute(sa.delete(action_state).where(sa.tuple_(*key).in_(old))).rowcount


def _delete(connection: sa.Connection, chosen: sa.Select[Any]) -> int:
    """Delete the rows of these keys; return how many."""
    (key,) = chosen.selected_columns
    keys = connection.execute(chosen).scalars().all()
    if keys:
        connection.execute(sa.delete(key.table).where(key.in_(keys)))
    return len(keys)
