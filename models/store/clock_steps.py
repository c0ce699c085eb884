"""Reset decisions and changes that lie ahead of a clock that was set back.

Watermarks move back to the clock, missed records after it are withdrawn, changes after it take
effect from it on, and runnable actions are unscheduled. What was sent stays sent: its id prevents a
second run.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.column_types import UTCDateTime
from models.operation import OperationState
from models.store.actions.cursors import UNSCHEDULED
from models.store.actions.missed import is_readable, spans
from models.store.conditions import IS_LIVE
from models.tables import action_cursor, actions, missed_spans, operations, revisions

SECOND = timedelta(seconds=1)


def wind_back(connection: sa.Connection, now: datetime, uid: UUID | None = None) -> int:
    """Reset decisions and changes after `now` to `now`, for one action or all; return how many.

    A span across `now` is decided again as a whole. If no tick would do so, because it belongs to
    an old revision or to a deleted or quarantined action, it is cut at `now` instead: its earlier
    part was missed.
    """
    ahead = _ahead(now, uid)
    again = _cut_spans(connection, now, ahead)
    connection.execute(
        sa.delete(operations).where(
            operations.c.action_uid.in_(ahead),
            operations.c.occurrence_at > now,
            operations.c.state == OperationState.MISSED,
        )
    )
    connection.execute(
        sa.delete(missed_spans).where(
            missed_spans.c.action_uid.in_(ahead), missed_spans.c.last_at > now
        )
    )
    _change_back(connection, now, ahead)
    moved = sa.update(action_cursor).where(action_cursor.c.watermark > now, *_only(uid))
    values = {"watermark": now, "next_occurrence_at": _unscheduled()}
    count = connection.execute(moved.values(values)).rowcount
    for one, first_at in again.items():
        its = sa.update(action_cursor).where(action_cursor.c.action_uid == one)
        connection.execute(its.values(watermark=first_at - SECOND))
    return count


def _cut_spans(
    connection: sa.Connection, now: datetime, ahead: sa.Select[Any]
) -> dict[UUID, datetime]:
    """Cut the spans across `now`; return the first instants of those to decide again, by action.

    These, and those of events, which cannot be cut, still end after `now`.
    """
    is_across = (missed_spans.c.first_at <= now, missed_spans.c.last_at > now)
    again: dict[UUID, datetime] = {}
    for span in spans(connection, missed_spans.c.action_uid.in_(ahead), *is_across):
        uid, plan = span["action_uid"], span["plan"]
        is_newest = span["is_decided"] and span["revision"] == span["newest_revision"]
        if is_newest and is_readable(span):
            again[uid] = min(span["first_at"], again.get(uid, now))
        elif not isinstance(plan, Plan) or plan.on_event is None:
            its = sa.update(missed_spans).where(missed_spans.c.id == span["id"])
            connection.execute(its.values(last_at=now.replace(microsecond=0)))
    return again


def begin_events(connection: sa.Connection, now: datetime) -> None:
    """Let event actions that were changed ahead of `now` begin at `now`.

    Also after a small step: they have no watermark that waits for the clock to catch up.
    """
    of_events = action_cursor.c.action_uid.in_(
        sa.select(actions.c.uid).where(actions.c.event.is_not(None))
    )
    changed = action_cursor.c.effective_from > now
    ahead = _ahead(now, None).where(of_events, changed)
    if connection.execute(ahead.limit(1)).first() is not None:
        _change_back(connection, now, ahead)


def come_back(connection: sa.Connection, behind: datetime, now: datetime) -> int:
    """Undo `wind_back` for changes made in (behind, now], after the clock was behind.

    Occurrences before such a change are not the changed action's. Returns how many actions.
    """
    made = revisions.c.effective_from
    again = (revisions.c.holds_from.is_not(None), made > behind, made <= now)
    newest = (
        sa.select(sa.func.max(made))
        .where(revisions.c.action_uid == action_cursor.c.action_uid, *again)
        .scalar_subquery()
    )
    changed = action_cursor.c.action_uid.in_(sa.select(revisions.c.action_uid).where(*again))
    right = {"watermark": newest, "effective_from": newest, "next_occurrence_at": _unscheduled()}
    moved = connection.execute(sa.update(action_cursor).where(changed).values(right))
    connection.execute(sa.update(revisions).where(*again).values(holds_from=None))
    return moved.rowcount


def _ahead(now: datetime, uid: UUID | None) -> sa.Select[Any]:
    """Return the actions decided beyond `now`, which include those changed beyond it."""
    ahead = sa.select(action_cursor.c.action_uid).where(action_cursor.c.watermark > now)
    return ahead.where(*_only(uid))


def _only(uid: UUID | None) -> tuple[sa.ColumnElement[bool], ...]:
    return () if uid is None else (action_cursor.c.action_uid == uid,)


def _change_back(connection: sa.Connection, now: datetime, ahead: sa.Select[Any]) -> None:
    """Let changes made after `now` hold from `now`; revisions keep their effective_from."""
    theirs = revisions.c.action_uid.in_(ahead)
    begun = sa.func.coalesce(revisions.c.holds_from, revisions.c.effective_from)
    connection.execute(sa.update(revisions).where(theirs, begun > now).values(holds_from=now))
    ended = sa.update(revisions).where(theirs, revisions.c.ended_at > now)
    connection.execute(ended.values(ended_at=now))
    its = (action_cursor.c.action_uid.in_(ahead), action_cursor.c.effective_from > now)
    connection.execute(sa.update(action_cursor).where(*its).values(effective_from=now))


def _unscheduled() -> sa.ColumnElement[datetime]:
    """Return UNSCHEDULED for scheduled or runnable actions, else NULL."""
    can_run = sa.exists().where(
        actions.c.uid == action_cursor.c.action_uid,
        IS_LIVE,
        actions.c.set_aside.is_(None),
        actions.c.event.is_(None),
    )
    is_scheduled = action_cursor.c.next_occurrence_at.is_not(None)
    return sa.case((is_scheduled | can_run, sa.literal(UNSCHEDULED, UTCDateTime())), else_=None)
