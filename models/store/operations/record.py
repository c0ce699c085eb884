"""Record operations, and skip the unstarted ones that newer ones take the place of."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import given, insert_all, insert_new, locked
from models.operation import UNSTARTED, OperationState
from models.sql import database_now, dicts, in_many, in_unindexed
from models.store.conditions import IS_RUNNING, IS_UNSTARTED
from models.store.operations import (
    MORE_WAITED,
    NOT_BEING_SENT,
    OVERTAKEN,
    RESERVED_FOR,
    is_requested,
)
from models.store.operations.causes import FACTS, Causes, because, with_cause
from models.store.operations.transitions import becomes, move
from models.tables import missed_spans, operations
from models.values import format_instant


def record_new(connection: sa.Connection, rows: Sequence[dict[str, Any]]) -> set[UUID]:
    """Record operations, reserved for sending by the caller; return the new ids.

    A row whose id exists, in any state, is left alone.
    """
    reserved = {"recorded_at": database_now(), "not_before": database_now(RESERVED_FOR)}
    return set(insert_new(connection, operations, rows, reserved)) if rows else set()


def recorded_among(connection: sa.Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of `ids` that exist as operations, in any state."""
    known = sa.select(operations.c.id).where(in_many(connection, operations.c.id, ids))
    return set(connection.execute(known).scalars())


def running_beside(connection: sa.Connection) -> dict[UUID, UUID]:
    """Return the running operations, by action, beside which overlap `skip` skips.

    As many as workers run at once. Beside a requested one nothing is skipped.
    """
    running = sa.select(operations.c.action_uid, operations.c.id).where(
        IS_RUNNING, operations.c.overlap_key.is_not(None), sa.not_(is_requested(operations.c))
    )
    return {row.action_uid: row.id for row in connection.execute(running)}


def record_ended(connection: sa.Connection, rows: Sequence[dict[str, Any]]) -> int:
    """Record operations that end at once, skipped or missed; return how many are new."""
    ended = {name: database_now() for name in ("recorded_at", "not_before", "finished_at")}
    return insert_all(connection, operations, rows, ended) if rows else 0


def record_missed(
    connection: sa.Connection, rows: Sequence[dict[str, Any]], spans: Sequence[dict[str, Any]]
) -> int:
    """Record missed occurrences, singly and as spans; return how many are new."""
    count = record_ended(connection, rows)
    if spans:
        insert_all(connection, missed_spans, spans, {"recorded_at": database_now()})
        count += sum(span["count"] for span in spans)
    return count


def overtake(connection: sa.Connection, newest: Sequence[tuple[UUID, datetime]]) -> int:
    """Skip unstarted scheduled operations before the newest, given as uid and occurrence.

    They are found first, and then locked in the order of their ids: by an update of what is found,
    one tick and another one that marks what it sent would wait for each other.
    """
    by = dict(newest)
    found = _before_newest(connection, by) if by else []
    if not found:
        return 0
    causes = Causes(connection)
    rows = [
        {"id": row["id"], "reason": because(f"{OVERTAKEN} by {at}", causes.why(row))}
        for row in found
        if (at := format_instant(by[row["action_uid"]]))
    ]
    # Of a statement that begins with a CTE, SQLite's driver counts no rows.
    return len(connection.execute(_OVERTAKEN, {"given": rows}).all())


_MAY_BE_OVERTAKEN = (
    # An operation that has begun (a retry, a lost one) is not overtaken.
    operations.c.first_started_at.is_(None),
    sa.not_(is_requested(operations.c)),
    NOT_BEING_SENT,
)


def _before_newest(
    connection: sa.Connection, newest: Mapping[UUID, datetime]
) -> list[dict[str, Any]]:
    its = (operations.c[name] for name in ("id", "occurrence_at"))
    query = sa.select(*its, *FACTS).where(
        in_many(connection, operations.c.action_uid, newest),
        operations.c.occurrence_at < max(newest.values()),
        IS_UNSTARTED,
        *_MAY_BE_OVERTAKEN,
    )
    rows = dicts(connection, query)
    return [row for row in rows if row["occurrence_at"] < newest[row["action_uid"]]]


_REASONS = given(operations, "id", "reason")
_TO_SKIP = locked(
    operations, _REASONS, in_unindexed(operations.c.state, UNSTARTED), *_MAY_BE_OVERTAKEN
)
_OVERTAKEN = (
    sa.update(operations)
    .where(operations.c.id == _TO_SKIP.c.id)
    .values(becomes(OperationState.SKIPPED, UNSTARTED, reason=_TO_SKIP.c.reason))
    .returning(operations.c.id)
)


def counts(connection: sa.Connection, uids: Collection[UUID]) -> dict[UUID, int]:
    """Return how many unstarted operations actions have, those with more than one."""
    if not uids:
        return {}
    query = (
        sa.select(operations.c.action_uid, sa.func.count().label("times"))
        .where(in_many(connection, operations.c.action_uid, list(uids)), IS_UNSTARTED)
        .group_by(operations.c.action_uid)
        .having(sa.func.count() > 1)
    )
    return {row.action_uid: row.times for row in connection.execute(query)}


def keep_newest(
    connection: sa.Connection,
    uid: UUID,
    max_waiting: int,
    causes: Causes | None = None,
    *,
    is_one_running: bool = False,
) -> int:
    """Skip an action's oldest never-started operations, so that no more than `max_waiting` wait.

    Unless one is running, the newest but those may be the next to run. Requested ones do not count.
    """
    oldest = (
        sa.select(operations.c.id)
        .where(operations.c.action_uid == uid, IS_UNSTARTED, NOT_BEING_SENT)
        .where(operations.c.first_started_at.is_(None), sa.not_(is_requested(operations.c)))
        .order_by(operations.c.occurrence_at.desc(), operations.c.id)
        .offset(max_waiting + (not is_one_running))
    )
    newest = connection.execute(oldest.limit(1)).scalar_one_or_none()
    if newest is None:
        return 0
    reason = with_cause(connection, f"{MORE_WAITED}{max_waiting} waited", newest, causes)
    # Not a list of ids: PostgreSQL takes no more than 65,535 parameters.
    surplus = operations.c.id.in_(oldest.scalar_subquery())
    skipped = move(OperationState.SKIPPED, surplus, NOT_BEING_SENT, reason=reason)
    return connection.execute(skipped).rowcount
