"""Prune old rows, a batch at a time."""

from datetime import datetime, timedelta

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
# Tick reports, and workers that are gone.
TICKS_KEPT_FOR = timedelta(days=7)


def prune_operations(
    connection: sa.Connection, small_app_id: int, age: timedelta, limit: int
) -> int:
    """Delete ended operations older than `age`, with attempts and log lines, and what plug-ins
    keep of them.

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
    for table in (attempts, operation_logs):
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


# What raised events, by its instant.
RAISED = {"events": events.c.occurred_at, "ends": action_ends.c.ended_at}


def prune_raised(
    connection: sa.Connection, what: str, small_app_id: int, age: timedelta, limit: int
) -> int:
    """Delete custom events, or ends, older than `age` plus the longest delay and look-back.

    Those are of the small app's actions, paused ones included. If a plan is broken, all stay.
    """
    at, kept_from = RAISED[what], _kept_from(connection, small_app_id, age)
    if kept_from is None:
        return 0
    of_app = at.table.c.small_app_id == small_app_id
    return delete((at.table, of_app, at < kept_from), connection, limit)


def _kept_from(
    connection: sa.Connection, small_app_id: int, age: timedelta
) -> sa.ColumnElement[datetime] | None:
    """Return the instant from which on events of a small app are kept; None for all."""
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
    longest = max(waits, default=timedelta(0)) + timedelta(seconds=behind_s or 0)
    return database_now(-age - longest)


def _longest_wait(plan: Plan) -> timedelta:
    if plan.on_event is None:
        return timedelta(0)
    return plan.on_event.lag + plan.look_back_of(plan.on_event) + timedelta(days=1)


# The table of what goes, and which rows of it.
Rule = tuple[sa.Table, *tuple[sa.ColumnElement[bool], ...]]


def rules_of_app(small_app_id: int, age: timedelta) -> dict[str, Rule]:
    """Return what of a small app, and of no small app, goes once it is older than `age`.

    The memories of deleted actions stay until their operations ended.
    """
    before, its_own = database_now(-age), actions.c.small_app_id == small_app_id
    is_open = sa.exists().where(
        operations.c.action_uid == actions.c.uid, operations.c.state.not_in(ENDED)
    )
    was_deleted = sa.and_(its_own, actions.c.deleted_at < before, sa.not_(is_open))
    of_app_or_none = (notices.c.small_app_id == small_app_id) | notices.c.small_app_id.is_(None)
    return {
        "missed_spans": (
            missed_spans,
            missed_spans.c.recorded_at < before,
            sa.exists().where(actions.c.uid == missed_spans.c.action_uid, its_own),
        ),
        # A row that has not ended has no finished_at.
        "backfills": (
            backfills,
            backfills.c.finished_at < before,
            backfills.c.small_app_id == small_app_id,
        ),
        "notices": (notices, notices.c.finished_at < before, of_app_or_none),
        "memories": (
            action_state,
            sa.exists().where(actions.c.uid == action_state.c.action_uid, was_deleted),
        ),
    }


def rules_of_installation(age: timedelta) -> dict[str, Rule]:
    """Return what of the whole installation goes once it is older than `age`, or than a week."""
    before, week_ago = database_now(-age), database_now(-TICKS_KEPT_FOR)
    return {
        "findings": (findings, findings.c.ended_at < before),
        "ticks": (ticks, ticks.c.finished_at < week_ago),
        "pauses": (pauses, before > ENDS_AT),
        "workers": (workers, workers.c.seen_at < week_ago),
    }


def delete(rule: Rule, connection: sa.Connection, limit: int) -> int:
    """Delete up to `limit` rows by a rule; return how many."""
    table, *where = rule
    old = sa.select(*table.primary_key).where(*where).limit(limit)
    key = sa.tuple_(*table.primary_key)
    # With the conditions once more, SQLite finds a small app's rows by the index of its id.
    return connection.execute(sa.delete(table).where(*where, key.in_(old))).rowcount
