"""A clock that is found behind what was decided or changed: what lies ahead of it is set back.

One rule: the deciding ends at the clock, what was missed after it is withdrawn, what was changed
after it holds from it on, and each action that can run is filed again. What was sent stays sent:
its id prevents a second run.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.operation import OperationState
from models.sql import UTCDateTime
from models.store.actions.cursors import FILE_ME
from models.tables import action_cursor, actions, missed_spans, operations, revisions


def straddling(
    connection: sa.Connection, now: datetime, uid: UUID | None = None
) -> Sequence[sa.Row[Any]]:
    """Return the missed spans on both sides of `now`, of all actions decided beyond it or of one.

    With each action's newest revision. `wind_back` withdraws all that still end ahead of `now`.
    """
    query = sa.select(missed_spans, actions.c.revision.label("newest_revision"))
    query = query.join(actions, actions.c.uid == missed_spans.c.action_uid).where(
        missed_spans.c.action_uid.in_(_ahead(now, uid)),
        missed_spans.c.first_at <= now,
        missed_spans.c.last_at > now,
    )
    return connection.execute(query.order_by(missed_spans.c.id)).all()


def wind_back(connection: sa.Connection, now: datetime, uid: UUID | None = None) -> int:
    """Set back to `now` what lies ahead of it, of all actions or of one; return how many."""
    ahead = _ahead(now, uid)
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
    filed = {"watermark": now, "next_occurrence_at": _file_again()}
    return connection.execute(moved.values(filed)).rowcount


def decide_anew(connection: sa.Connection, uid: UUID, since: datetime) -> None:
    """Let an action that was wound back be decided from `since` on."""
    its = sa.update(action_cursor).where(action_cursor.c.action_uid == uid)
    connection.execute(its.values(watermark=since))


def begin_events(connection: sa.Connection, now: datetime) -> None:
    """Let event actions that were changed ahead of `now` begin at `now`.

    Also after a small step: they have no watermark that waits for the clock to come again.
    """
    of_events = action_cursor.c.action_uid.in_(
        sa.select(actions.c.uid).where(actions.c.event.is_not(None))
    )
    changed = action_cursor.c.effective_from > now
    ahead = _ahead(now, None).where(of_events, changed)
    if connection.execute(ahead.limit(1)).first() is not None:
        _change_back(connection, now, ahead)


def come_back(connection: sa.Connection, behind: datetime, now: datetime) -> int:
    """Undo `wind_back` for changes made in (behind, now]: the clock was behind, and is right again.

    What lay before such a change is not the changed action's. Returns how many actions.
    """
    made = revisions.c.effective_from
    again = (revisions.c.holds_from.is_not(None), made > behind, made <= now)
    newest = (
        sa.select(sa.func.max(made))
        .where(revisions.c.action_uid == action_cursor.c.action_uid, *again)
        .scalar_subquery()
    )
    changed = action_cursor.c.action_uid.in_(sa.select(revisions.c.action_uid).where(*again))
    right = {"watermark": newest, "effective_from": newest, "next_occurrence_at": _file_again()}
    moved = connection.execute(sa.update(action_cursor).where(changed).values(right))
    connection.execute(sa.update(revisions).where(*again).values(holds_from=None))
    return moved.rowcount


def _ahead(now: datetime, uid: UUID | None) -> sa.Select[Any]:
    """Return the actions that are decided beyond `now`; what is changed beyond it is among them."""
    ahead = sa.select(action_cursor.c.action_uid).where(action_cursor.c.watermark > now)
    return ahead.where(*_only(uid))


def _only(uid: UUID | None) -> tuple[sa.ColumnElement[bool], ...]:
    return () if uid is None else (action_cursor.c.action_uid == uid,)


def _change_back(connection: sa.Connection, now: datetime, ahead: sa.Select[Any]) -> None:
    """Let what was changed ahead of `now` hold from there; a revision keeps when it was made."""
    mine = revisions.c.action_uid.in_(ahead)
    begun = sa.func.coalesce(revisions.c.holds_from, revisions.c.effective_from)
    connection.execute(sa.update(revisions).where(mine, begun > now).values(holds_from=now))
    ended = sa.update(revisions).where(mine, revisions.c.ended_at > now)
    connection.execute(ended.values(ended_at=now))
    its = (action_cursor.c.action_uid.in_(ahead), action_cursor.c.effective_from > now)
    connection.execute(sa.update(action_cursor).where(*its).values(effective_from=now))


def _file_again() -> sa.ColumnElement[datetime]:
    """Return "file me" for what is filed or could run; paused and set-aside actions stay out."""
    can_run = sa.exists().where(
        actions.c.uid == action_cursor.c.action_uid,
        actions.c.active,
        actions.c.deleted_at.is_(None),
        actions.c.set_aside.is_(None),
        actions.c.event.is_(None),
    )
    is_filed = action_cursor.c.next_occurrence_at.is_not(None)
    return sa.case((is_filed | can_run, sa.literal(FILE_ME, UTCDateTime())), else_=None)
