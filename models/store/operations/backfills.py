"""Store backfills: ranges of an action's past, run in batches, one attempt each."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import NotFound
from models.operation import OperationState
from models.sql import database_now, dicts, is_among, is_still
from models.store.conditions import IS_ACTIVE_BACKFILL, IS_UNSTARTED
from models.store.operations import RESERVED_FOR, is_requested
from models.store.operations.reserve import reserve_rows
from models.store.scope import Scope
from models.tables import actions, backfills, operations

# How long a worker has for a batch before another worker continues.
BATCH_TAKES = timedelta(minutes=1)
# When an accepted message is sent again if no worker processes it.
RESENT_AFTER = timedelta(minutes=5)
ACTIVE = "active"
_IS_STILL_ACTIVE = is_still(backfills.c.state, {ACTIVE})

# The id and attempt in a backfill's message.
Turn = tuple[UUID, int]


def insert(connection: sa.Connection, row: dict[str, Any]) -> None:
    """Store a backfill, reserved for sending by the caller."""
    begun = {"requested_at": database_now(), "not_before": database_now(RESERVED_FOR)}
    new = sa.insert(backfills).values(**begun, state=ACTIVE, cursor=row["since"])
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


def reserve_sendable(connection: sa.Connection, limit: int, by: datetime) -> list[Turn]:
    """Reserve up to `limit` backfills for 30 s that no worker processed at the instant `by`.

    The caller commits.
    """
    shown = (backfills.c.id, backfills.c.attempt)
    rows = reserve_rows(connection, shown, [IS_ACTIVE_BACKFILL], limit, by)
    return [(row.id, row.attempt) for row in rows]


def put_off(connection: sa.Connection, turns: Sequence[Turn], by: timedelta) -> None:
    """Delay the sending of these backfills, if they are still in that attempt."""
    for id, attempt in turns:
        own = (backfills.c.id == id, backfills.c.attempt == attempt, _IS_STILL_ACTIVE)
        later = sa.update(backfills).where(*own).values(not_before=database_now(by))
        connection.execute(later)


def release_after_clock(connection: sa.Connection) -> None:
    """Release backfills that wait longer than any backfill should: the clock was ahead."""
    ahead = backfills.c.not_before > database_now(RESENT_AFTER)
    released = sa.update(backfills).where(IS_ACTIVE_BACKFILL, ahead)
    connection.execute(released.values(not_before=database_now()))


def hold(connection: sa.Connection, turn: Turn) -> sa.Row[Any] | None:
    """Return a backfill, locked, if it is active in that attempt: its next batch is the caller's.

    A second caller waits for the first, and finds another attempt.
    """
    own = (backfills.c.id == turn[0], backfills.c.attempt == turn[1], _IS_STILL_ACTIVE)
    return connection.execute(sa.select(backfills).where(*own).with_for_update()).one_or_none()


def move_on(
    connection: sa.Connection, row: sa.Row[Any], counts: dict[str, int], cursor: datetime
) -> int:
    """Record a batch of a locked backfill; return the attempt of the next batch.

    `counts` are added: recorded, repeated, passed_over.
    """
    added = {name: backfills.c[name] + count for name, count in counts.items()}
    moved = sa.update(backfills).where(backfills.c.id == row.id)
    connection.execute(
        moved.values(
            **added,
            cursor=cursor,
            attempt=backfills.c.attempt + 1,
            not_before=database_now(BATCH_TAKES),
        )
    )
    return int(row.attempt) + 1


def finish(connection: sa.Connection, id: UUID, state: str, error: str | None = None) -> None:
    """End an active backfill: done, or failed with an error."""
    ended = sa.update(backfills).where(backfills.c.id == id, _IS_STILL_ACTIVE)
    connection.execute(ended.values(state=state, error=error, finished_at=database_now()))


def cancel_active(connection: sa.Connection, uids: Sequence[UUID], reason: str) -> list[UUID]:
    """Cancel the active backfills of actions; return their ids."""
    cancelled = (
        sa.update(backfills)
        .where(is_among(connection, backfills.c.action_uid, uids), backfills.c.state == ACTIVE)
        .values(state="cancelled", error=reason, finished_at=database_now())
        .returning(backfills.c.id)
    )
    return list(connection.execute(cancelled).scalars())


def count_unstarted(connection: sa.Connection, uid: UUID) -> int:
    """Return the number of an action's requested operations that have not started."""
    unstarted = sa.select(sa.func.count()).where(
        operations.c.action_uid == uid,
        IS_UNSTARTED,
        is_requested(operations.c),
    )
    return int(connection.execute(unstarted).scalar_one())


def found_in(
    connection: sa.Connection, uid: UUID, since: datetime, until: datetime
) -> dict[UUID, dict[str, Any]]:
    """Return an action's operations whose occurrence lies in (since, until], by id."""
    wanted = (
        "id", "action_uid", "occurrence_at", "subject", "state", "reason", "attempt", "revision",
        "steps", "first_started_at", "overlap_key",
    )  # fmt: skip
    query = sa.select(*(operations.c[name] for name in wanted)).where(
        operations.c.action_uid == uid,
        operations.c.occurrence_at > since,
        operations.c.occurrence_at <= until,
    )
    return {row["id"]: row for row in dicts(connection, query)}


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
