"""Reset decisions and changes that lie ahead of a clock that was set back.

Watermarks move back to the clock, missed records after it are withdrawn, changes after it take
effect from it on, and runnable actions are due at once. What was sent stays sent: its id prevents a
second run.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from models.action.plan import Plan
from models.bulk_sql import given
from models.column_types import UTCDateTime
from models.operation import OperationState
from models.sql import in_many, parts_of
from models.store.actions.missed import spans
from models.store.conditions import IS_LIVE
from models.store.notices import missed as missed_notices
from models.tables import action_cursor, actions, missed_spans, operations, revisions

SECOND = timedelta(seconds=1)
# How many actions one transaction winds back: a million at once would exceed PostgreSQL's limits.
AT_ONCE = 5_000


def hold_ahead(connection: sa.Connection, now: datetime) -> Sequence[UUID]:
    """Return some actions decided beyond `now`, which include those changed beyond it, locked.

    Only if none is left, there are none.
    """
    is_ahead = action_cursor.c.watermark > now
    ahead = sa.select(action_cursor.c.action_uid).where(is_ahead)
    farthest = ahead.order_by(action_cursor.c.watermark.desc()).limit(AT_ONCE)
    while uids := [uid for uid in connection.execute(farthest).scalars() if uid is not None]:
        among = in_many(connection, action_cursor.c.action_uid, uids)
        # In the order in which changes lock them; those may have set back all of these meanwhile.
        in_order = ahead.where(among).order_by(action_cursor.c.action_uid)
        held = connection.execute(in_order.with_for_update(key_share=True)).scalars().all()
        if held:
            return held
    return []


def wind_back(connection: sa.Connection, now: datetime, uids: Sequence[UUID]) -> None:
    """Reset decisions and changes after `now` to `now`, for locked actions that have some.

    A span across `now` is decided again as a whole. If no tick would do so, because it belongs to
    an old revision or to a deleted or quarantined action, it is cut at `now` instead: its earlier
    part was missed.
    """
    again = _cut_spans(connection, now, uids)
    connection.execute(
        sa.delete(operations).where(
            in_many(connection, operations.c.action_uid, uids),
            operations.c.occurrence_at > now,
            operations.c.state == OperationState.MISSED,
        )
    )
    connection.execute(
        sa.delete(missed_spans).where(
            in_many(connection, missed_spans.c.action_uid, uids), missed_spans.c.last_at > now
        )
    )
    missed_notices.tell_again(connection)
    _change_back(connection, now, uids)
    moved = sa.update(action_cursor).where(in_many(connection, action_cursor.c.action_uid, uids))
    values = {"watermark": now, "next_occurrence_at": _due_from(sa.literal(now, UTCDateTime()))}
    connection.execute(moved.values(values))
    until = given(action_cursor, "action_uid", "watermark")
    decided = sa.update(action_cursor).where(action_cursor.c.action_uid == until.c.action_uid)
    rows = [{"action_uid": uid, "watermark": at - SECOND} for uid, at in again.items()]
    connection.execute(decided.values(watermark=until.c.watermark), {"given": rows})


def _cut_spans(
    connection: sa.Connection, now: datetime, uids: Sequence[UUID]
) -> dict[UUID, datetime]:
    """Cut the spans across `now`; return the first instants of those to decide again, by action.

    These, and those of events, which cannot be cut, still end after `now`.
    """
    again: dict[UUID, datetime] = {}
    cut: list[int] = []
    of_theirs = in_many(connection, missed_spans.c.action_uid, uids)
    is_across = (missed_spans.c.first_at <= now, missed_spans.c.last_at > now)
    for span in spans(connection, of_theirs, *is_across):
        uid, plan = span["action_uid"], span["plan"]
        is_newest = span["is_decided"] and span["revision"] == span["newest_revision"]
        if is_newest:
            again[uid] = min(span["first_at"], again.get(uid, now))
        elif not isinstance(plan, Plan) or plan.on_event is None:
            cut.append(span["id"])
    if cut:
        its = sa.update(missed_spans).where(in_many(connection, missed_spans.c.id, cut))
        connection.execute(its.values(last_at=now.replace(microsecond=0)))
    return again


def begin_events(connection: sa.Connection, now: datetime) -> None:
    """Let event actions that were changed ahead of `now` begin at `now`.

    Also after a small step: they have no watermark that waits for the clock to catch up.
    """
    of_events = action_cursor.c.action_uid.in_(
        sa.select(actions.c.uid).where(actions.c.event.is_not(None))
    )
    changed = (action_cursor.c.watermark > now, action_cursor.c.effective_from > now)
    ahead = sa.select(action_cursor.c.action_uid).where(of_events, *changed)
    uids = connection.execute(ahead).scalars().all()
    for some in parts_of(uids, AT_ONCE):
        _change_back(connection, now, some)


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
    right = {"watermark": newest, "effective_from": newest, "next_occurrence_at": _due_from(newest)}
    moved = connection.execute(sa.update(action_cursor).where(changed).values(right))
    connection.execute(sa.update(revisions).where(*again).values(holds_from=None))
    return moved.rowcount


def _change_back(connection: sa.Connection, now: datetime, uids: Sequence[UUID]) -> None:
    """Let changes made after `now` hold from `now`; revisions keep their effective_from."""
    theirs = in_many(connection, revisions.c.action_uid, uids)
    begun = sa.func.coalesce(revisions.c.holds_from, revisions.c.effective_from)
    connection.execute(sa.update(revisions).where(theirs, begun > now).values(holds_from=now))
    ended = sa.update(revisions).where(theirs, revisions.c.ended_at > now)
    connection.execute(ended.values(ended_at=now))
    its = in_many(connection, action_cursor.c.action_uid, uids)
    begins = sa.update(action_cursor).where(its, action_cursor.c.effective_from > now)
    connection.execute(begins.values(effective_from=now))


def _due_from(at: sa.ColumnElement[datetime]) -> sa.ColumnElement[datetime]:
    """Return `at` for scheduled or runnable actions, else NULL: the next tick decides them."""
    can_run = sa.exists().where(
        actions.c.uid == action_cursor.c.action_uid,
        IS_LIVE,
        actions.c.set_aside.is_(None),
        actions.c.event.is_(None),
    )
    is_scheduled = action_cursor.c.next_occurrence_at.is_not(None)
    return sa.case((is_scheduled | can_run, at), else_=None)
