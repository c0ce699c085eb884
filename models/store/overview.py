"""What an overview shows of many actions; each query costs as much as what it finds."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import TICKED, TROUBLED, OperationState
from models.sql import database_now, dicts, in_literals, in_many
from models.store import measures
from models.store.conditions import IS_RUNNING, IS_UNSTARTED, NOT_DELETED
from models.store.operations import with_names
from models.store.scope import Scope
from models.tables import action_cursor, actions, operations, ticks
from models.values.zones import EPOCH
from models.worker_kinds import worker_kind_of

HOUR = timedelta(hours=1)
HOUR_S = 3600
HOURS = 24
MOST_DUE = 1_000
# Of each hour, and of what did not go well in a day: a busy day costs no more than this to count.
MOST_COUNTED = 10_000
# How many of the last operations say how many begin in time.
MOST_TIMED = 2_000
# Characters of an error that is compared with others.
LONGEST_ERROR = 300


def running(connection: sa.Connection, scope: Scope, limit: int) -> list[dict[str, Any]]:
    """Return up to `limit` running operations, the longest first."""
    query = with_names().where(IS_RUNNING, scope.has_unindexed(operations.c.small_app_id))
    return dicts(connection, query.order_by(operations.c.started_at).limit(limit))


def counts(
    connection: sa.Connection, scope: Scope, now: datetime, late: timedelta
) -> dict[str, Any]:
    """Return how many operations there are, and how many actions are due, by parts of indexes.

    `due` within an hour, up to MOST_DUE; `running` and `waiting`, and the oldest of these; `hour_0`
    to `hour_23`, which were recorded in the last hours, up to MOST_COUNTED each. Of the last ones
    `ticked` began after a tick recorded them, and `on_time` of those less than `late` after they
    were due.
    """
    its, cursor, count = operations.c, action_cursor.c, sa.func.count()
    its_own, is_soon = scope.has(its.small_app_id), cursor.next_occurrence_at <= now + HOUR
    few_of_it = scope.has_unindexed(its.small_app_id)
    due = sa.select(sa.literal(1)).join_from(
        action_cursor, actions, actions.c.uid == cursor.action_uid
    )
    first = due.where(is_soon, NOT_DELETED, scope.has(actions.c.small_app_id))
    first = first.order_by(cursor.next_occurrence_at).limit(MOST_DUE)
    single = {
        "due": sa.select(count).select_from(first.subquery()),
        "running": sa.select(count).where(IS_RUNNING, few_of_it),
    }
    for number in range(HOURS):
        until = now - (HOURS - 1 - number) * HOUR
        within = (its.recorded_at > until - HOUR, its.recorded_at <= until, its_own)
        some = sa.select(sa.literal(1)).where(*within).limit(MOST_COUNTED)
        single[f"hour_{number}"] = sa.select(count).select_from(some.subquery())
    # Both of one row: for the least alone SQLite would read all operations in that order.
    since = sa.func.min(its.recorded_at).label("waiting_since")
    waiting = sa.select(count.label("waiting"), since).where(IS_UNSTARTED, few_of_it).subquery()
    punctual = _punctual(its_own & (its.recorded_at >= now - HOURS * HOUR), late)
    parts = (one.scalar_subquery().label(name) for name, one in single.items())
    each = sa.select(waiting, punctual, *parts)
    return dicts(connection, each.select_from(waiting.join(punctual, sa.true())))[0]


def _punctual(chosen: sa.ColumnElement[bool], late: timedelta) -> sa.Subquery:
    """Return how many of the last operations began after a tick, and how many of them in time."""
    its = operations.c
    last = sa.select(its.cause, its.occurrence_at, its.first_started_at).where(chosen)
    last_ones = last.order_by(its.recorded_at.desc()).limit(MOST_TIMED).subquery()
    row = last_ones.c
    ticked = in_literals(row.cause, TICKED) & row.first_started_at.is_not(None)
    lateness = _epoch(row.first_started_at) - _epoch(row.occurrence_at)
    on_time = ticked & (lateness < int(late.total_seconds()))
    counted = {"ticked": ticked, "on_time": on_time}
    shown = (sa.func.count(sa.case((one, 1))).label(name) for name, one in counted.items())
    return sa.select(*shown).select_from(last_ones).subquery()


def troubled(connection: sa.Connection, scope: Scope, since: datetime) -> list[dict[str, Any]]:
    """Return how many operations did not go well, by the hour after `since`, and by state.

    Of more than MOST_COUNTED, those that ended last.
    """
    its = operations.c
    number = ((_epoch(its.finished_at) - int(since.timestamp())) // HOUR_S).label("hour")
    last = (
        sa.select(number, its.state)
        .where(in_literals(its.state, TROUBLED), its.finished_at >= since)
        .where(its.finished_at <= database_now(), scope.has(its.small_app_id))
        .order_by(its.finished_at.desc())
        .limit(MOST_COUNTED)
        .subquery()
    )
    counted = sa.select(last, sa.func.count().label("count")).group_by(*last.c)
    return dicts(connection, counted)


def _epoch(at: sa.ColumnElement[datetime | None]) -> sa.ColumnElement[int]:
    """Return the seconds from 1970 to an instant."""
    return sa.cast(sa.extract("epoch", at), sa.BigInteger)


def errors(
    connection: sa.Connection, scope: Scope, since: datetime, limit: int
) -> list[dict[str, Any]]:
    """Return the error of up to `limit` operations that ended last, and their actions."""
    its = operations.c
    error = sa.func.substr(its.error, 1, LONGEST_ERROR).label("error")
    query = (
        sa.select(its.id, its.finished_at, its.action_uid, its.small_app_id, actions.c.name, error)
        .join(actions, actions.c.uid == its.action_uid)
        .where(in_literals(its.state, TROUBLED), its.finished_at >= since, its.error.is_not(None))
        .where(scope.has(its.small_app_id))
        .order_by(its.finished_at.desc())
    )
    return dicts(connection, query.limit(limit))


def queues(connection: sa.Connection) -> dict[str, dict[str, Any]]:
    """Return how many operations wait and run in each queue, by its name in lists.

    `oldest_at` is since when the oldest waits, and `beaten_at` the oldest heartbeat of a running
    one: its lease ends some time after it.
    """
    found: dict[str, dict[str, Any]] = {}
    nothing = {"waiting": 0, "running": 0, "oldest_at": None, "beaten_at": None}
    for row in measures.operations_now(connection):
        one = found.setdefault(worker_kind_of(row.task).listed(row.queue), dict(nothing))
        is_running = row.state == OperationState.RUNNING
        one["running" if is_running else "waiting"] += row.times
        key, at = ("beaten_at", row.beaten_at) if is_running else ("oldest_at", row.oldest_at)
        one[key] = min(filter(None, (one[key], at)), default=None)
    return found


def coming(connection: sa.Connection, scope: Scope, limit: int) -> list[dict[str, Any]]:
    """Return up to `limit` actions with their next occurrence, in its order.

    Those that are due have one before now, until a tick decides them. Paused actions have none.
    """
    at = action_cursor.c.next_occurrence_at
    shown = (actions.c.uid, actions.c.small_app_id, actions.c.name, at)
    text = sa.type_coerce(actions.c.plan, sa.Text).label("plan")
    query = (
        sa.select(*shown, text)
        .join(actions, actions.c.uid == action_cursor.c.action_uid)
        .where(scope.has(actions.c.small_app_id), at.is_not(None), NOT_DELETED)
        # By the instant alone, as the index has them: names would be sorted for the whole hour.
        .order_by(at)
    )
    return dicts(connection, query.limit(limit))


# Built once: both tables are wide.
_EACH = operations.alias()
_OLDEST = (
    sa.select(_EACH.c.occurrence_at)
    .where(_EACH.c.action_uid == actions.c.uid, _EACH.c.occurrence_at <= database_now())
    .order_by(_EACH.c.occurrence_at.desc())
    .limit(1)
    .correlate(actions)
)


def last_runs(
    connection: sa.Connection, uids: Collection[UUID], limit: int
) -> list[dict[str, Any]]:
    """Return the `limit` newest operations of each of these actions, in the order of occurrences.

    `why` is a reason or an error.
    """
    oldest, its = _OLDEST.offset(limit - 1).scalar_subquery(), operations.c
    since = sa.func.coalesce(oldest, sa.literal(EPOCH, its.occurrence_at.type))
    why = sa.func.coalesce(its.error, its.reason).label("why")
    # An event may have thousands of users at one instant, that of the oldest.
    newest_first = sa.func.row_number().over(
        partition_by=its.action_uid, order_by=(its.occurrence_at.desc(), its.recorded_at.desc())
    )
    query = (
        sa.select(its.action_uid, its.id, its.occurrence_at, its.state, its.started_at)
        .add_columns(its.finished_at, why, newest_first.label("place"))
        .join(actions, actions.c.uid == its.action_uid)
        .where(in_many(connection, actions.c.uid, list(uids)))
        .where(its.occurrence_at >= since, its.occurrence_at <= database_now())
        .subquery()
    )
    found = sa.select(query).where(query.c.place <= limit)
    return dicts(connection, found.order_by(query.c.place.desc()))


def counted(
    connection: sa.Connection,
    uids: Collection[UUID],
    since: datetime,
    span: timedelta,
    offsets: Sequence[tuple[datetime, timedelta]] = (),
) -> list[dict[str, Any]]:
    """Return how many operations of each action are in each state, by spans of their occurrences.

    `span` is the number of the span since 1970, on a clock that has each of `offsets` until its
    instant, by default UTC. `id` is one of its operations, as text.
    """
    seconds, at = int(span.total_seconds()), operations.c.occurrence_at
    epoch = _epoch(at)
    shifts = [(at < end, sa.literal(int(shift.total_seconds()))) for end, shift in offsets]
    shown = epoch + sa.case(*shifts, else_=shifts[-1][1]) if shifts else epoch
    number = (shown // seconds).label("span")
    query = (
        sa.select(
            operations.c.action_uid,
            number,
            operations.c.state,
            sa.func.count().label("count"),
            sa.func.min(sa.cast(operations.c.id, sa.Text)).label("id"),
        )
        .where(in_many(connection, operations.c.action_uid, list(uids)))
        .where(operations.c.occurrence_at >= since, operations.c.occurrence_at <= database_now())
        .group_by(operations.c.action_uid, number, operations.c.state)
    )
    return dicts(connection, query)


def ticked(connection: sa.Connection, since: datetime) -> list[datetime]:
    """Return the `now` of the ticks that ended since then, in order."""
    query = (
        sa.select(ticks.c.now)
        .where(ticks.c.finished_at >= since, ticks.c.finished_at <= database_now())
        .order_by(ticks.c.finished_at, ticks.c.id)
    )
    return [at for at in connection.execute(query).scalars() if at]


def last_ticks(connection: sa.Connection, limit: int) -> list[dict[str, Any]]:
    """Return the last ticks with their instants, duration and report, in order."""
    shown = (ticks.c.now, ticks.c.finished_at, ticks.c.duration_ms, ticks.c.report)
    query = sa.select(*shown).order_by(ticks.c.id.desc()).limit(limit)
    rows = dicts(connection, query)
    return [row for row in reversed(rows) if row["now"] and row["finished_at"]]
