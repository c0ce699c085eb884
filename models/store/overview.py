"""What an overview shows of many actions; each query costs as much as what it finds."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import OperationState
from models.sql import database_now, dicts, in_many
from models.store import measures
from models.store.conditions import IS_RUNNING, NOT_DELETED
from models.store.operations import with_names
from models.store.scope import Scope
from models.tables import action_cursor, actions, operations, ticks
from models.worker_kinds import worker_kind_of

DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def running(
    connection: sa.Connection, scope: Scope, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """Return up to `limit` running operations, the longest first, and how many run."""
    its_own = (IS_RUNNING, scope.has(operations.c.small_app_id))
    count = sa.select(sa.func.count()).where(*its_own).correlate(None).scalar_subquery()
    query = with_names().add_columns(count.label("running_count")).where(*its_own)
    rows = dicts(connection, query.order_by(operations.c.started_at).limit(limit))
    return rows, rows[0]["running_count"] if rows else 0


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


def ended(connection: sa.Connection, scope: Scope, limit: int) -> list[UUID]:
    """Return the actions of up to `limit` operations that ended last, within a day."""
    at = operations.c.finished_at
    lately = (at >= database_now(-DAY), scope.has(operations.c.small_app_id))
    query = sa.select(operations.c.action_uid).where(*lately).order_by(at.desc())
    return list(connection.execute(query.limit(limit)).scalars())


def coming(
    connection: sa.Connection, scope: Scope, until: datetime, limit: int
) -> list[dict[str, Any]]:
    """Return up to `limit` actions with their next occurrence up to `until`, in order.

    Those that are due have one before now, until a tick decides them. Paused actions have none.
    """
    at = action_cursor.c.next_occurrence_at
    shown = (actions.c.uid, actions.c.small_app_id, actions.c.name, at)
    text = sa.type_coerce(actions.c.plan, sa.Text).label("plan")
    query = (
        sa.select(*shown, text)
        .join(actions, actions.c.uid == action_cursor.c.action_uid)
        .where(scope.has(actions.c.small_app_id), at <= until, NOT_DELETED)
        # By the instant alone, as the index has them: names would be sorted for the whole hour.
        .order_by(at)
    )
    return dicts(connection, query.limit(limit))


def last_runs(
    connection: sa.Connection, uids: Collection[UUID], limit: int
) -> list[dict[str, Any]]:
    """Return the `limit` newest operations of each of these actions, in the order of occurrences.

    There are more of an action if several have the instant of the oldest. `why` is a reason or an
    error.
    """
    each, its = operations.alias(), operations.c
    oldest = (
        sa.select(each.c.occurrence_at)
        .where(each.c.action_uid == actions.c.uid, each.c.occurrence_at <= database_now())
        .order_by(each.c.occurrence_at.desc())
        .limit(1)
        .offset(limit - 1)
        .correlate(actions)
        .scalar_subquery()
    )
    since = sa.func.coalesce(oldest, sa.literal(EPOCH, its.occurrence_at.type))
    why = sa.func.coalesce(its.error, its.reason).label("why")
    query = (
        sa.select(its.action_uid, its.id, its.occurrence_at, its.state, its.started_at)
        .add_columns(its.finished_at, why)
        .join(actions, actions.c.uid == its.action_uid)
        .where(in_many(connection, actions.c.uid, list(uids)))
        .where(its.occurrence_at >= since, its.occurrence_at <= database_now())
        .order_by(its.occurrence_at)
    )
    return dicts(connection, query)


def named(connection: sa.Connection, uids: Collection[UUID]) -> list[dict[str, Any]]:
    """Return uid, small app, name and plan of actions that are not deleted."""
    query = sa.select(actions.c.uid, actions.c.small_app_id, actions.c.name, actions.c.plan).where(
        NOT_DELETED, in_many(connection, actions.c.uid, list(uids))
    )
    return dicts(connection, query)


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
    epoch = sa.cast(sa.extract("epoch", at), sa.BigInteger)
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
