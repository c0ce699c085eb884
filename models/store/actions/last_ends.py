"""The last end of an action's operations, which an interval from the end counts from."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import update_all
from models.operation import UNSTARTED, OperationState
from models.sql import in_literals, in_many, parts_of
from models.store.actions.cursors import AT_ONCE
from models.store.conditions import IS_RUNNING
from models.tables import action_cursor, operations

if TYPE_CHECKING:
    from models.action.plan import Plan

# Whose ends are read: the newest occurrences of an action. The cursor keeps the last end for those
# that retention removed, and for a retry of an older one.
NEWEST = 10
UNFINISHED = UNSTARTED | {OperationState.RUNNING}
# An end further ahead was written by a clock that was wrong.
MOST_AHEAD = timedelta(minutes=5)

_newest = (
    sa.select(operations.c.finished_at, operations.c.state)
    .where(operations.c.action_uid == action_cursor.c.action_uid)
    .order_by(operations.c.occurrence_at.desc())
    .limit(NEWEST)
    .correlate(action_cursor)
    .subquery("newest")
)
_last_end = (
    sa.select(sa.func.max(_newest.c.finished_at))
    .where(_newest.c.finished_at <= sa.bindparam("latest", type_=action_cursor.c.ended_at.type))
    .scalar_subquery()
)
# Neither reads the whole history: a retry of an older operation counts once it runs.
_is_unfinished = sa.or_(
    sa.exists().where(in_literals(_newest.c.state, UNFINISHED)),
    sa.exists().where(operations.c.overlap_key == action_cursor.c.action_uid, IS_RUNNING),
)


@dataclass(frozen=True, slots=True)
class LastEnd:
    """What an interval from the end counts from: when its rule came into force, and its last end.

    `watermark` is the instant up to which its occurrences are decided; `is_unfinished`: an
    operation has not ended.
    """

    effective_from: datetime
    watermark: datetime
    ended_at: datetime | None = None
    is_unfinished: bool = False

    def count(self, plan: "Plan", uid: UUID) -> tuple["Plan", datetime | None]:
        """Return the plan with the occurrence that is known, and the end that this counts from.

        While an operation is unfinished, none is known. What was decided and left no trace counts
        as an end.
        """
        if self.is_unfinished:
            return plan, None
        found = plan.from_last_end(self.effective_from, self.ended_at)
        if found.schedule(uid).next(self.watermark) is not None:
            return found, self.ended_at
        ended_at = max(self.watermark, self.ended_at or self.watermark)
        return plan.from_last_end(self.effective_from, ended_at), ended_at


def last_ends(
    connection: sa.Connection, uids: Collection[UUID], now: datetime
) -> dict[UUID, LastEnd]:
    """Return the last ends of these actions at `now`, by uid."""
    found: dict[UUID, LastEnd] = {}
    for some in parts_of(list(uids), AT_ONCE):
        query = sa.select(
            action_cursor.c.action_uid,
            action_cursor.c.effective_from,
            action_cursor.c.watermark,
            action_cursor.c.ended_at,
            _last_end.label("last_end"),
            _is_unfinished.label("is_unfinished"),
        ).where(in_many(connection, action_cursor.c.action_uid, some))
        rows = connection.execute(query, {"latest": now + MOST_AHEAD})
        found |= {row.action_uid: _last_end_of(row, now) for row in rows}
    return found


def _last_end_of(row: sa.Row[Any], now: datetime) -> LastEnd:
    known = [one for one in (row.ended_at, row.last_end) if one and one <= now + MOST_AHEAD]
    ended_at = max(known, default=None)
    return LastEnd(row.effective_from, row.watermark, ended_at, bool(row.is_unfinished))


def keep(connection: sa.Connection, ends: Mapping[UUID, datetime]) -> None:
    """Keep the last ends of these actions in their locked cursors."""
    kept = [{"action_uid": uid, "ended_at": at} for uid, at in ends.items()]
    update_all(connection, action_cursor, kept)
