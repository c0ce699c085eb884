"""Store backfills: ranges of an action's past, each recorded in one transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import NotFound
from models.operation import Cause, OperationState
from models.sql import database_now, dicts, in_many, in_unindexed
from models.store.conditions import IS_ACTIVE_BACKFILL, IS_UNSTARTED
from models.store.operations import RESERVED_FOR
from models.store.operations.reserve import reserve_rows
from models.store.scope import Scope
from models.tables import actions, backfills, operations

ACTIVE = "active"
_IS_STILL_ACTIVE = in_unindexed(backfills.c.state, {ACTIVE})


def insert(connection: sa.Connection, row: dict[str, Any]) -> None:
    """Store a backfill, reserved for sending by the caller."""
    begun = {"requested_at": database_now(), "not_before": database_now(RESERVED_FOR)}
    new = sa.insert(backfills).values(**begun, state=ACTIVE)
    connection.execute(new.values(**row))


def get(connection: sa.Connection, id: UUID, scope: Scope) -> dict[str, Any]:
    """Return a backfill of the scope, with `action_name`; raises NotFound."""
    of_action = backfills.join(actions, actions.c.uid == backfills.c.action_uid)
    query = (
        sa.select(backfills, actions.c.name.label("action_name"))
        .select_from(of_action)
        .where(backfills.c.id == id, scope.has(backfills.c.small_app_id))
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"no backfill has the id {id}; see `minutebook action show`")
    return dict(row._mapping)


def of_action(connection: sa.Connection, uid: UUID, limit: int) -> list[dict[str, Any]]:
    """Return an action's newest backfills first."""
    query = sa.select(backfills).where(backfills.c.action_uid == uid)
    newest = query.order_by(backfills.c.requested_at.desc(), backfills.c.id).limit(limit)
    return dicts(connection, newest)


def reserve_sendable(connection: sa.Connection, limit: int, by: datetime) -> list[UUID]:
    """Reserve up to `limit` active backfills for 30 s, of those that were due at the instant `by`.

    The caller commits. A repeated message is harmless: `hold` lets one worker record.
    """
    rows = reserve_rows(connection, [backfills.c.id], [IS_ACTIVE_BACKFILL], limit, by)
    return [row.id for row in rows]


def hold(connection: sa.Connection, id: UUID) -> sa.Row[Any] | None:
    """Return a backfill, locked, if it is active: the caller records it.

    A second caller waits for the first, and finds it ended.
    """
    own = (backfills.c.id == id, _IS_STILL_ACTIVE)
    return connection.execute(sa.select(backfills).where(*own).with_for_update()).one_or_none()


def finish(connection: sa.Connection, id: UUID, state: str, **columns: int | str) -> None:
    """End an active backfill: done, with its counts, or failed, with an error."""
    ended = sa.update(backfills).where(backfills.c.id == id, _IS_STILL_ACTIVE)
    connection.execute(ended.values(state=state, finished_at=database_now(), **columns))


def cancel_active(connection: sa.Connection, uids: Sequence[UUID], reason: str) -> list[UUID]:
    """Cancel the active backfills of actions; return their ids."""
    of_them = in_many(connection, backfills.c.action_uid, uids)
    return _cancel(connection, reason, of_them, backfills.c.state == ACTIVE)


def cancel_recorded(connection: sa.Connection, uid: UUID, reason: str) -> list[UUID]:
    """Cancel an action's backfills with operations that have not started; return their ids.

    The caller cancels the operations.
    """
    unstarted = sa.select(operations.c.backfill_id).where(
        operations.c.action_uid == uid, IS_UNSTARTED, operations.c.cause == Cause.BACKFILL
    )
    return _cancel(connection, reason, backfills.c.action_uid == uid, backfills.c.id.in_(unstarted))


def _cancel(connection: sa.Connection, reason: str, *which: sa.ColumnElement[bool]) -> list[UUID]:
    cancelled = sa.update(backfills).where(*which).returning(backfills.c.id)
    ended = cancelled.values(state="cancelled", error=reason, finished_at=database_now())
    return list(connection.execute(ended).scalars())


def states_of(connection: sa.Connection, row: dict[str, Any]) -> dict[OperationState, int]:
    """Return the number of a backfill's operations by state."""
    query = (
        sa.select(operations.c.state, sa.func.count())
        .where(operations.c.action_uid == row["action_uid"])
        .where(operations.c.occurrence_at > row["since"])
        .where(operations.c.occurrence_at <= row["until"])
        .where(operations.c.backfill_id == row["id"])
        .group_by(operations.c.state)
        .order_by(operations.c.state)
    )
    return {OperationState(row[0]): row[1] for row in connection.execute(query)}
