"""Read, lock and advance the cursors of actions."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import update_all
from models.sql import in_many, parts_of
from models.store.conditions import NOT_DELETED
from models.tables import action_cursor, actions

AT_ONCE = 1_000

# All that a tick decides by.
_DECIDED = sa.select(
    action_cursor.c.action_uid,
    action_cursor.c.watermark,
    actions.c.small_app_id,
    actions.c.name,
    actions.c.plan,
    actions.c.revision,
).join(actions, actions.c.uid == action_cursor.c.action_uid)
_CURSORS = _DECIDED.add_columns(
    action_cursor.c.next_occurrence_at,
    action_cursor.c.effective_from,
    action_cursor.c.ended_at,
    actions.c.owner,
    actions.c.active,
    actions.c.event,
    actions.c.quarantined,
    actions.c.deleted_at,
    actions.c.created_at,
    actions.c.document,
    actions.c.document_hash,
)


def claim_due(
    connection: sa.Connection,
    now: datetime,
    limit: int,
    *,
    left_out: Collection[UUID] = (),
    skip_locked: bool = True,
) -> Sequence[sa.Row[Any]]:
    """Return up to `limit` actions with next_occurrence_at <= now, earliest first, locked.

    Actions locked by another process are skipped, or with `skip_locked=False` waited for. Each row
    has only what a tick decides by.
    """
    due = (
        sa.select(action_cursor.c.action_uid)
        .where(action_cursor.c.next_occurrence_at <= now)
        .order_by(action_cursor.c.next_occurrence_at)
        .limit(limit)
        .with_for_update(skip_locked=skip_locked, key_share=True)
    )
    if left_out:
        due = due.where(action_cursor.c.action_uid.not_in(left_out))
    return _read_locked(connection, connection.execute(due).scalars().all(), _DECIDED)


def any_due(connection: sa.Connection, now: datetime, left_out: Collection[UUID] = ()) -> bool:
    """Return whether an action has next_occurrence_at <= now, locked or not."""
    due = (
        sa.select(sa.literal(1))
        .where(action_cursor.c.next_occurrence_at <= now)
        .order_by(action_cursor.c.next_occurrence_at)
        .limit(1)
    )
    if left_out:
        due = due.where(action_cursor.c.action_uid.not_in(left_out))
    return connection.execute(due).first() is not None


def lock(connection: sa.Connection, uid: UUID) -> sa.Row[Any]:
    """Return one action's cursor, locked as a tick would lock it.

    Raises sqlalchemy.exc.NoResultFound for an unknown action.
    """
    found = lock_all(connection, [uid])
    if not found:
        raise sa.exc.NoResultFound(f"no action has the uid {uid}")
    return found[0]


def seen_named(
    connection: sa.Connection,
    small_app_id: int,
    names: Sequence[str],
    *more: sa.ColumnElement[Any],
) -> dict[str, sa.Row[Any]]:
    """Return what documents of these names are compared with, by name, without a lock.

    `more` are other columns of the actions. The conditions are in words that no partial index has:
    until its first analysis, PostgreSQL takes those for empty, and would read all of the small app.
    """
    compared = ("name", "owner", "revision", "document_hash", "active", "quarantined", "created_at")
    columns = (actions.c.uid.label("action_uid"), *(actions.c[name] for name in compared), *more)
    is_there = sa.case((NOT_DELETED, 1)) == 1
    seen = sa.select(*columns).where(actions.c.small_app_id == small_app_id, is_there)
    found: dict[str, sa.Row[Any]] = {}
    for some in parts_of(names, AT_ONCE):
        rows = connection.execute(seen.where(in_many(connection, actions.c.name, some)))
        found |= {row.name: row for row in rows}
    return found


def lock_all(connection: sa.Connection, uids: Sequence[UUID]) -> Sequence[sa.Row[Any]]:
    """Return these actions' cursors, earliest first, each locked as `lock` does."""
    its_cursor = in_many(connection, action_cursor.c.action_uid, uids)
    in_order = sa.select(action_cursor.c.action_uid).order_by(action_cursor.c.action_uid)
    connection.execute(in_order.where(its_cursor).with_for_update(key_share=True))
    return _read_locked(connection, uids)


def seen(connection: sa.Connection, uids: Sequence[UUID]) -> dict[UUID, sa.Row[Any]]:
    """Return these actions' cursors as they are, by uid, without a lock."""
    return {row.action_uid: row for row in _read_locked(connection, uids)}


def hold_action(connection: sa.Connection, uid: UUID) -> bool:
    """Lock the action of a locked cursor; return False, without a wait, if a hand has it locked."""
    its_row = sa.select(actions.c.uid).where(actions.c.uid == uid)
    held = connection.execute(its_row.with_for_update(skip_locked=True, key_share=True))
    return held.first() is not None


def _read_locked(
    connection: sa.Connection, uids: Sequence[UUID], query: sa.Select[Any] = _CURSORS
) -> Sequence[sa.Row[Any]]:
    """Return locked cursors with their actions, earliest first.

    A separate statement: PostgreSQL would join a row that it waited for with actions from before
    the wait.
    """
    if not uids:
        return []
    query = query.where(in_many(connection, action_cursor.c.action_uid, uids))
    return connection.execute(query.order_by(action_cursor.c.next_occurrence_at)).all()


def advance(connection: sa.Connection, moves: Sequence[dict[str, Any]]) -> None:
    """Write the given columns of many cursors, which the caller has locked.

    Each move has `action_uid` and the same columns, such as `watermark`.
    """
    update_all(connection, action_cursor, moves)


def reschedule(connection: sa.Connection) -> None:
    """Make all actions due that have a next occurrence.

    The next tick decides them from their watermarks on, and computes their next occurrences anew.
    """
    scheduled = sa.update(action_cursor).where(action_cursor.c.next_occurrence_at.is_not(None))
    connection.execute(scheduled.values(next_occurrence_at=action_cursor.c.watermark))


# Row locks stand in the rows, not in `pg_locks`: the oldest transaction that has locked some.
_HOLDER = sa.text("""
SELECT a.pid, a.application_name, a.usename, a.state,
    extract(epoch FROM clock_timestamp() - a.xact_start) AS held_s
FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.relation IN (CAST('action_cursor' AS regclass), CAST('actions' AS regclass))
    AND l.mode IN ('RowShareLock', 'RowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    AND l.pid <> pg_backend_pid() AND l.granted
ORDER BY a.xact_start LIMIT 1
""")


def holder(connection: sa.Connection) -> str | None:
    """Return the session that has held locks on actions the longest, None if none is known."""
    if connection.dialect.name != "postgresql":
        return None
    row = connection.execute(_HOLDER).one_or_none()
    if row is None:
        return None
    name = row.application_name or row.usename
    return f"pid {row.pid} ({name}, {row.state}, for {row.held_s:.0f} s)"
