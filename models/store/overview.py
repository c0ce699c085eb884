"""What an overview shows of many actions; each query costs as much as what it finds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.column_types import UTCDateTime
from models.operation import TICKED, TROUBLED, UNSTARTED, OperationState
from models.sql import database_now, is_among, stands_in
from models.store.actions.status import MISSED_MATTERS
from models.store.notices.overdue import NEVER_STARTED
from models.store.operations import with_names
from models.store.scope import Scope
from models.tables import action_cursor, action_state, actions, operations, ticks

DAY = timedelta(days=1)
NEVER = datetime.min.replace(tzinfo=UTC)
# Of so many operations that ended last, the actions may be shown.
MOST_ENDED = 200


def running(
    connection: sa.Connection, scope: Scope, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """Return up to `limit` running operations, the longest first, and how many run."""
    is_running = stands_in(operations.c.state, {OperationState.RUNNING})
    its_own = (is_running, scope.has(operations.c.small_app_id))
    count = sa.select(sa.func.count()).where(*its_own).correlate(None).scalar_subquery()
    query = with_names().add_columns(count.label("running_count")).where(*its_own)
    found = connection.execute(query.order_by(operations.c.started_at).limit(limit)).mappings()
    rows = [dict(row) for row in found]
    return rows, rows[0]["running_count"] if rows else 0


def queues(connection: sa.Connection) -> list[dict[str, Any]]:
    """Return how many operations wait and run in each queue, and since when the oldest waits.

    `beaten_at` is the oldest heartbeat of a running one: its lease ends some time after it.
    """
    waits = stands_in(operations.c.state, UNSTARTED)
    runs = stands_in(operations.c.state, {OperationState.RUNNING})
    zero, nothing = sa.literal(0), sa.null()
    waiting = sa.select(
        operations.c.queue,
        sa.func.count().label("waiting"),
        zero.label("running"),
        sa.func.min(operations.c.recorded_at).label("oldest_at"),
        sa.cast(nothing, UTCDateTime()).label("beaten_at"),
    )
    running = sa.select(
        operations.c.queue,
        zero,
        sa.func.count(),
        sa.cast(nothing, UTCDateTime()),
        sa.func.min(operations.c.heartbeat_at),
    )
    both = sa.union_all(
        waiting.where(waits).group_by(operations.c.queue),
        running.where(runs).group_by(operations.c.queue),
    )
    found: dict[str, dict[str, Any]] = {}
    for row in connection.execute(both).mappings():
        known = found.setdefault(row["queue"], dict(row))
        known |= {name: known[name] or row[name] for name in row}
    return [found[name] for name in sorted(found)]


@dataclass(frozen=True, slots=True)
class Matter:
    """An action that an overview may show, and which of its operations is the reason, if one is."""

    action_uid: UUID
    operation_id: UUID | None
    # How many of its operations are such.
    times: int


@dataclass(frozen=True, slots=True)
class Matters:
    """The actions that may matter, each list in the order in which they are looked at."""

    overdue: list[Matter]
    troubled: list[Matter]
    set_aside: list[Matter]
    failing: list[Matter]
    ended: list[Matter]


def matters(
    connection: sa.Connection, scope: Scope, late: timedelta, now: datetime, limit: int
) -> Matters:
    """Return the actions that may matter, up to `limit` of each kind, by one statement.

    - `overdue`: with the oldest operation that a tick recorded `late` ago and none started.
    - `troubled`: with the last operation that failed, ended partially or was missed within
      `MISSED_MATTERS`; first those after which no run succeeded, then the last ended.
    - `set_aside`, the first first, and `failing`: their last run failed or was partial.
    - `ended`: those of the operations that ended last, within a day.
    """
    parts = {
        "overdue": _overdue(scope, late).limit(limit),
        "troubled": _troubled(scope, now - MISSED_MATTERS).limit(limit),
        "set_aside": _set_aside(scope).limit(limit),
        "failing": _failing(scope).limit(limit),
        "ended": _ended(scope, now - DAY).limit(MOST_ENDED),
    }
    each = (
        sa.select(sa.literal(name).label("kind"), part.subquery()) for name, part in parts.items()
    )
    found: dict[str, list[sa.Row[Any]]] = {name: [] for name in parts}
    for row in connection.execute(sa.union_all(*each)):
        found[row.kind].append(row)
    return Matters(**{name: _in_order(rows, name) for name, rows in found.items()})


def _in_order(rows: Sequence[sa.Row[Any]], kind: str) -> list[Matter]:
    """Return rows by their rank and instant: the greatest first, unless the oldest matters most."""
    ordered = sorted(
        rows,
        key=lambda row: (row.rank, row.at or NEVER),
        reverse=kind not in {"overdue", "set_aside"},
    )
    return [Matter(row.action_uid, row.id, row.times) for row in ordered if row.action_uid]


def _matter(
    uid: sa.ColumnElement[UUID],
    at: sa.ColumnElement[datetime],
    rank: sa.ColumnElement[int] | None = None,
    id: sa.ColumnElement[UUID] | None = None,
    times: sa.ColumnElement[int] | None = None,
) -> sa.Select[Any]:
    """Return the columns that the parts of `matters` have in common."""
    nothing = sa.cast(sa.null(), operations.c.id.type)
    return sa.select(
        uid.label("action_uid"),
        (nothing if id is None else id).label("id"),
        (sa.literal(0) if times is None else times).label("times"),
        (sa.literal(0) if rank is None else rank).label("rank"),
        at.label("at"),
    )


def _troubled(scope: Scope, since: datetime) -> sa.Select[Any]:
    # First what went wrong: SQLite would sort all operations by their actions instead.
    wrong = (
        sa.select(
            operations.c.id,
            operations.c.action_uid,
            operations.c.occurrence_at,
            operations.c.finished_at,
        )
        .where(stands_in(operations.c.state, TROUBLED), operations.c.finished_at >= since)
        .where(scope.has(operations.c.small_app_id))
        .cte("wrong")
        .prefix_with("MATERIALIZED")
    )
    newest = (wrong.c.finished_at.desc(), wrong.c.occurrence_at.desc())
    last = sa.select(
        wrong.c.id,
        wrong.c.action_uid,
        wrong.c.finished_at,
        sa.func.row_number().over(partition_by=wrong.c.action_uid, order_by=newest).label("place"),
        sa.func.count().over(partition_by=wrong.c.action_uid).label("times"),
    ).subquery("last")
    is_over = sa.func.coalesce(action_state.c.last_success_at > last.c.finished_at, sa.false())
    stands = sa.case((is_over, 0), else_=1)
    return (
        _matter(last.c.action_uid, last.c.finished_at, stands, last.c.id, last.c.times)
        .join(actions, actions.c.uid == last.c.action_uid)
        .outerjoin(
            action_state,
            (action_state.c.action_uid == last.c.action_uid) & (action_state.c.subject == ""),
        )
        .where(last.c.place == 1, actions.c.deleted_at.is_(None))
        .order_by(is_over, last.c.finished_at.desc(), last.c.id)
    )


def _overdue(scope: Scope, late: timedelta) -> sa.Select[Any]:
    ranked = (
        sa.select(
            operations.c.id,
            operations.c.action_uid,
            operations.c.recorded_at,
            sa.func.row_number()
            .over(partition_by=operations.c.action_uid, order_by=operations.c.recorded_at)
            .label("place"),
            sa.func.count().over(partition_by=operations.c.action_uid).label("times"),
        )
        .where(NEVER_STARTED, stands_in(operations.c.cause, TICKED))
        .where(operations.c.recorded_at < database_now(-late))
    )
    first = ranked.where(scope.has(operations.c.small_app_id)).subquery("first")
    query = _matter(first.c.action_uid, first.c.recorded_at, id=first.c.id, times=first.c.times)
    return query.where(first.c.place == 1).order_by(first.c.recorded_at)


def _set_aside(scope: Scope) -> sa.Select[Any]:
    its_own = scope.has(actions.c.small_app_id)
    query = _matter(actions.c.uid, actions.c.updated_at).where(its_own)
    broken = query.where(actions.c.set_aside.is_not(None), actions.c.deleted_at.is_(None))
    return broken.order_by(actions.c.updated_at)


def _failing(scope: Scope) -> sa.Select[Any]:
    # First the states: SQLite would read all actions instead.
    state = (
        sa.select(action_state)
        .where(action_state.c.last_state.in_((OperationState.FAILED, OperationState.PARTIAL)))
        .where(action_state.c.subject == "")
        .cte("failing")
        .prefix_with("MATERIALIZED")
    )
    query = _matter(actions.c.uid, state.c.last_run_at, state.c.failures_in_row)
    return (
        query.join(state, state.c.action_uid == actions.c.uid)
        .where(actions.c.active, actions.c.deleted_at.is_(None))
        .where(scope.has(actions.c.small_app_id))
        .order_by(state.c.failures_in_row.desc(), state.c.last_run_at.desc())
    )


def _ended(scope: Scope, since: datetime) -> sa.Select[Any]:
    at = operations.c.finished_at
    query = _matter(operations.c.action_uid, at)
    ended = query.where(at >= since, scope.has(operations.c.small_app_id))
    return ended.order_by(at.desc())


def coming(
    connection: sa.Connection, scope: Scope, until: datetime, limit: int, unscheduled: int
) -> list[dict[str, Any]]:
    """Return up to `limit` actions with their next occurrence from now to `until`, in order.

    After them come up to `unscheduled` actions whose next occurrence the next tick computes, with
    an earlier one: new ones first. Paused actions are left out.
    """
    at = action_cursor.c.next_occurrence_at
    # By the instant alone, as the index has them: names would be sorted for the whole hour.
    scheduled = _cursors(scope).where(at.between(database_now(), until)).order_by(at)
    others = _cursors(scope).where(at < database_now(), actions.c.active).order_by(at)
    both = (scheduled.limit(limit).subquery(), others.limit(unscheduled).subquery())
    query = sa.union_all(*(sa.select(one) for one in both))
    return [dict(row) for row in connection.execute(query).mappings()]


def _cursors(scope: Scope) -> sa.Select[Any]:
    shown = (actions.c.uid, actions.c.small_app_id, actions.c.name, actions.c.plan)
    return (
        sa.select(*shown, action_cursor.c.next_occurrence_at)
        .join(actions, actions.c.uid == action_cursor.c.action_uid)
        .where(scope.has(actions.c.small_app_id))
    )


def named(connection: sa.Connection, uids: Collection[UUID]) -> list[dict[str, Any]]:
    """Return uid, small app, name and plan of actions that are not deleted."""
    query = sa.select(actions.c.uid, actions.c.small_app_id, actions.c.name, actions.c.plan).where(
        is_among(connection, actions.c.uid, list(uids)), actions.c.deleted_at.is_(None)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


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
        .where(is_among(connection, operations.c.action_uid, list(uids)))
        .where(operations.c.occurrence_at >= since, operations.c.occurrence_at <= database_now())
        .group_by(operations.c.action_uid, number, operations.c.state)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def ticked(connection: sa.Connection, since: datetime) -> list[dict[str, Any]]:
    """Return the ticks that ended since then: `now`, duration and report, in order."""
    query = (
        sa.select(ticks.c.now, ticks.c.duration_ms, ticks.c.report)
        .where(ticks.c.finished_at >= since, ticks.c.finished_at <= database_now())
        .order_by(ticks.c.finished_at, ticks.c.id)
    )
    rows = [dict(row) for row in connection.execute(query).mappings()]
    return [row for row in rows if row["now"]]


def last_ticks(connection: sa.Connection, limit: int) -> list[dict[str, Any]]:
    """Return the last ticks with their instants, duration and report, in order."""
    shown = (ticks.c.now, ticks.c.finished_at, ticks.c.duration_ms, ticks.c.report)
    query = sa.select(*shown).order_by(ticks.c.id.desc()).limit(limit)
    rows = [dict(row) for row in connection.execute(query).mappings()]
    return [row for row in reversed(rows) if row["now"] and row["finished_at"]]
