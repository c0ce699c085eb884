"""The actions that an overview may show: each list costs as much as what it finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import TROUBLED, OperationState
from models.sql import database_now, stands_in
from models.store.actions.status import MISSED_MATTERS
from models.store.conditions import IS_EXPECTED, IS_LIVE, NOT_DELETED, state_of
from models.store.scope import Scope
from models.tables import action_state, actions, operations

DAY = timedelta(days=1)
NEVER = datetime.min.replace(tzinfo=UTC)
# How many of the operations that ended last are searched for actions to show.
MOST_ENDED = 200
# How many of the oldest waiting operations are searched for actions to show.
MOST_OVERDUE = 1_000


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


def matters_of(
    connection: sa.Connection, scope: Scope, late: timedelta, now: datetime, limit: int
) -> Matters:
    """Return the actions that may matter, up to `limit` of each kind, by one statement.

    - `overdue`: with the oldest operation that a tick recorded `late` ago and no worker started,
      of the `MOST_OVERDUE` oldest of all.
    - `troubled`: with the last operation that failed, ended partially or was missed within
      `MISSED_MATTERS`; first those after which no run succeeded, then the last ended.
    - `set_aside`, the earliest first, and `failing`: their last run failed or was partial.
    - `ended`: the actions of the operations that ended last, within a day.
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
    """Return the columns that the parts of `matters_of` have in common."""
    nothing = sa.cast(sa.null(), operations.c.id.type)
    return sa.select(
        uid.label("action_uid"),
        (nothing if id is None else id).label("id"),
        (sa.literal(0) if times is None else times).label("times"),
        (sa.literal(0) if rank is None else rank).label("rank"),
        at.label("at"),
    )


def _troubled(scope: Scope, since: datetime) -> sa.Select[Any]:
    # What went wrong is selected first: SQLite would sort all operations by their actions instead.
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
        .outerjoin(action_state, state_of(last.c.action_uid))
        .where(last.c.place == 1, NOT_DELETED)
        .order_by(is_over, last.c.finished_at.desc(), last.c.id)
    )


def _overdue(scope: Scope, late: timedelta) -> sa.Select[Any]:
    oldest = (
        sa.select(operations.c.id, operations.c.action_uid, operations.c.recorded_at)
        .where(IS_EXPECTED, operations.c.recorded_at < database_now(-late))
        .where(scope.has(operations.c.small_app_id))
        .order_by(operations.c.recorded_at)
        .limit(MOST_OVERDUE)
        .subquery("oldest")
    )
    uid, at = oldest.c.action_uid, oldest.c.recorded_at
    place = sa.func.row_number().over(partition_by=uid, order_by=at)
    times = sa.func.count().over(partition_by=uid)
    first = sa.select(oldest, place.label("place"), times.label("times")).subquery("first")
    query = _matter(first.c.action_uid, first.c.recorded_at, id=first.c.id, times=first.c.times)
    return query.where(first.c.place == 1).order_by(first.c.recorded_at)


def _set_aside(scope: Scope) -> sa.Select[Any]:
    its_own = scope.has(actions.c.small_app_id)
    query = _matter(actions.c.uid, actions.c.updated_at).where(its_own)
    broken = query.where(actions.c.set_aside.is_not(None), NOT_DELETED)
    return broken.order_by(actions.c.updated_at)


def _failing(scope: Scope) -> sa.Select[Any]:
    # The states are selected first: SQLite would read all actions instead.
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
        .where(IS_LIVE)
        .where(scope.has(actions.c.small_app_id))
        .order_by(state.c.failures_in_row.desc(), state.c.last_run_at.desc())
    )


def _ended(scope: Scope, since: datetime) -> sa.Select[Any]:
    at = operations.c.finished_at
    query = _matter(operations.c.action_uid, at)
    ended = query.where(at >= since, scope.has(operations.c.small_app_id))
    return ended.order_by(at.desc())
