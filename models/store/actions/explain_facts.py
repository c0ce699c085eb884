"""Read the facts about one instant of an action: the revision in force, records, status."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.errors import NotFound
from models.store import ticks, workers
from models.store.actions import SEE_ACTIONS, missed
from models.store.operations.transitions import attempts_of
from models.tables import action_cursor, actions, missed_spans, operations, revisions

# An event action has one operation per subject.
MOST_RECORDED = 100


@dataclass(frozen=True, slots=True)
class Known:
    """The stored facts about an action at an instant.

    `revision` was in force then, None before the first; `recorded` are the operations of that
    instant, `span` is the missed span around it.
    """

    action: sa.RowMapping
    revision: sa.RowMapping | None
    recorded: Sequence[sa.RowMapping]
    span: sa.RowMapping | None


@dataclass(frozen=True, slots=True)
class Status:
    """The installation's last tick, and the broker's names of queues that live workers consume."""

    tick: dict[str, Any] | None
    queues: frozenset[str]


_ACTION = (
    sa.select(
        actions.c.uid,
        actions.c.small_app_id,
        actions.c.name,
        actions.c.created_at,
        actions.c.deleted_at,
        actions.c.quarantined,
        action_cursor.c.watermark,
        action_cursor.c.effective_from,
    )
    .join(action_cursor, action_cursor.c.action_uid == actions.c.uid)
    .where(actions.c.uid == sa.bindparam("its_uid"))
)


def known(
    connection: sa.Connection, uid: UUID, instant: datetime, subject: str | None = None
) -> Known:
    """Return the facts about an instant of an action, deleted or not; raises NotFound.

    `subject` restricts them to one user.
    """
    action = connection.execute(_ACTION, {"its_uid": uid}).mappings().one_or_none()
    if action is None:
        raise NotFound(f"no action has the uid {uid}", SEE_ACTIONS)
    return Known(
        action,
        _in_force(connection, uid, instant),
        _recorded(connection, uid, instant, subject),
        _span(connection, uid, instant),
    )


def status(connection: sa.Connection, lease: timedelta) -> Status:
    """Return the installation's status; workers silent for `lease` do not count."""
    queues = workers.listened_queues(connection, lease)
    return Status(ticks.last(connection), queues)


def last_error(connection: sa.Connection, operation_id: UUID) -> str | None:
    """Return the last error of an operation's attempts, or None."""
    errors = [one["error"] for one in attempts_of(connection, operation_id) if one["error"]]
    return errors[-1] if errors else None


def _in_force(connection: sa.Connection, uid: UUID, instant: datetime) -> sa.RowMapping | None:
    newest = (
        sa.select(revisions)
        .where(revisions.c.action_uid == uid, revisions.c.effective_from < instant)
        .order_by(revisions.c.number.desc())
        .limit(1)
    )
    return connection.execute(newest).mappings().one_or_none()


def _recorded(
    connection: sa.Connection, uid: UUID, instant: datetime, subject: str | None
) -> Sequence[sa.RowMapping]:
    query = (
        sa.select(operations)
        .where(operations.c.action_uid == uid, operations.c.occurrence_at == instant)
        .order_by(operations.c.recorded_at, operations.c.id)
        .limit(MOST_RECORDED)
    )
    if subject is not None:
        # Occurrences of the clock have no subject.
        query = query.where(operations.c.subject.is_(None) | (operations.c.subject == subject))
    return connection.execute(query).mappings().all()


def _span(connection: sa.Connection, uid: UUID, instant: datetime) -> sa.RowMapping | None:
    its = missed_spans.c
    query = missed.with_plans().where(its.action_uid == uid)
    around = query.where(its.first_at <= instant, its.last_at >= instant)
    newest = around.order_by(its.id.desc()).limit(1)
    return connection.execute(newest).mappings().one_or_none()
