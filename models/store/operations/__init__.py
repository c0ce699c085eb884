"""Read operations."""

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar
from uuid import UUID

import sqlalchemy as sa

from models.errors import Hint, NotFound
from models.operation import REQUESTED, TROUBLED, UNSTARTED, OperationState
from models.sql import Columns, begins_id, dicts, in_literals, in_many
from models.store.scope import WHOLE_INSTALLATION, Scope
from models.stored import uuid_in
from models.tables import (
    actions,
    operation_logs,
    operations,
    small_apps,
)
from runtime.database import default_engine, is_made, reading

Id = TypeVar("Id", bound=UUID | str)

# How long a process has to send an operation that it recorded or reserved.
RESERVED_FOR = timedelta(seconds=30)
# Statements that many requests run are made once per scope, and kept for this many scopes.
SCOPES = 64
SEE_OPERATIONS = Hint("see `minutebook run list`", "look for it among the runs")
UNKNOWN = "unknown"
# Why an unstarted operation was skipped: a newer one replaced it.
OVERTAKEN = "overtaken"
OVERLAP = "overlap: {} was running"
MORE_WAITED = "overlap: more than "
# Why an operation with a failed attempt ends as failed.
NO_OTHER_ATTEMPT = "no other attempt: "


def gave_way(row: Columns) -> sa.ColumnElement[bool]:
    """Return whether newer operations took the place of a skipped one before it ever started."""
    reasons = (row["reason"].startswith(one) for one in (OVERTAKEN, MORE_WAITED))
    return sa.and_(row["first_started_at"].is_(None), sa.or_(*reasons))


def is_requested(row: Columns) -> sa.ColumnElement[bool]:
    """Return the condition that a retry or a backfill caused an operation."""
    return in_literals(row["cause"], REQUESTED)


# What is being sent to the user's own application must not count as not run until the outcome of
# the sending is known.
NOT_BEING_SENT = sa.not_(
    in_literals(operations.c.state, {OperationState.PENDING})
    & operations.c.send_started_at.is_not(None)
)


def active_operations(connection: sa.Connection, uid: UUID) -> list[dict[str, Any]]:
    """Return id and state of an action's unstarted and running operations."""
    active = {*UNSTARTED, OperationState.RUNNING}
    query = sa.select(operations.c.id, operations.c.state).where(
        operations.c.action_uid == uid, operations.c.state.in_(active)
    )
    return dicts(connection, query)


def get_operation_state(
    operation_id: UUID | str,
    connection: sa.Connection | None = None,
    scope: Scope = WHOLE_INSTALLATION,
) -> OperationState | str:
    """Return the state of an operation, or `unknown` when none in the scope has that id.

    Reads only the database: that of `connection`, or of this process's settings. If an embedded
    database was never created, no operation is known.
    """
    if connection is not None:
        return _state_of(connection, operation_id, scope)
    if not is_made(engine := default_engine()):
        return UNKNOWN
    with reading(engine) as opened:
        return _state_of(opened, operation_id, scope)


def _state_of(connection: sa.Connection, id: UUID | str, scope: Scope) -> OperationState | str:
    state = connection.execute(_state(scope), {"its_id": uuid_in(id)}).scalar()
    return UNKNOWN if state is None else OperationState(state)


@lru_cache(maxsize=SCOPES)
def _state(scope: Scope) -> sa.Select[Any]:
    its_id = operations.c.id == sa.bindparam("its_id")
    return sa.select(operations.c.state).where(its_id, scope.has(operations.c.small_app_id))


def get(connection: sa.Connection, operation_id: UUID, scope: Scope) -> dict[str, Any]:
    """Return an operation of the scope with its action's name; raises NotFound."""
    row = connection.execute(_one(scope), {"its_id": operation_id}).one_or_none()
    if row is None:
        raise NotFound(f"no run has the id {operation_id}", SEE_OPERATIONS)
    return dict(row._mapping)


@lru_cache(maxsize=SCOPES)
def _one(scope: Scope) -> sa.Select[Any]:
    its_id = operations.c.id == sa.bindparam("its_id")
    return with_names().where(its_id, scope.has(operations.c.small_app_id))


def beginning_with(connection: sa.Connection, digits: str, scope: Scope) -> list[UUID]:
    """Return up to two ids of the scope that begin with these hexadecimal digits, four or more."""
    query = sa.select(operations.c.id).where(
        begins_id(operations.c.id, digits), scope.has(operations.c.small_app_id)
    )
    return list(connection.execute(query.limit(2)).scalars())


def by_ids(connection: sa.Connection, ids: Collection[UUID]) -> list[dict[str, Any]]:
    """Return those operations of `ids` that exist, with their actions' names."""
    query = with_names().where(in_many(connection, operations.c.id, ids))
    return dicts(connection, query)


def recent(connection: sa.Connection, limit: int, *, uid: UUID) -> list[dict[str, Any]]:
    """Return the newest operations of an action first."""
    newest = (operations.c.occurrence_at.desc(), operations.c.id)
    query = with_names().where(operations.c.action_uid == uid).order_by(*newest)
    return dicts(connection, query.limit(limit))


def in_states(states: Collection[str]) -> sa.ColumnElement[bool]:
    """Return the condition to list operations in these states, as the partial indexes have it.

    Few operations are in any state but success: PostgreSQL then reads those, not the history.
    """
    words = {OperationState(state) for state in states}
    stands = in_literals(operations.c.state, words)
    if words <= TROUBLED:
        return sa.and_(stands, operations.c.finished_at.is_not(None))
    return stands


def log_lines(connection: sa.Connection, operation_id: UUID) -> list[dict[str, Any]]:
    """Return an operation's last log lines, oldest first; empty when it has none."""
    query = sa.select(operation_logs.c.lines).where(operation_logs.c.operation_id == operation_id)
    return connection.execute(query).scalar_one_or_none() or []


def counts_by_state(connection: sa.Connection, since: datetime) -> dict[str, int]:
    """Return the number of operations recorded since then, by state."""
    query = (
        sa.select(operations.c.state, sa.func.count())
        .where(operations.c.recorded_at >= since)
        .group_by(operations.c.state)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def with_names() -> sa.Select[Any]:
    """Return the query of operations with their action's name, and their app's name and zone."""
    names = (
        actions.c.name.label("action_name"),
        small_apps.c.name.label("app"),
        small_apps.c.zone.label("zone"),
    )
    return (
        sa.select(operations, *names)
        .join(actions, actions.c.uid == operations.c.action_uid)
        # By the small app of what is found: SQLite would search all that each one ever ran.
        .join(small_apps, small_apps.c.id == operations.c.small_app_id + 0)
    )
