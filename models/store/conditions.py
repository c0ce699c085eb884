"""The conditions that many statements share, as the partial indexes have them."""

from uuid import UUID

import sqlalchemy as sa

from models.operation import TICKED, UNSTARTED, Cause, OperationState
from models.sql import in_literals
from models.tables import (
    action_cursor,
    action_state,
    actions,
    attempts,
    backfills,
    notices,
    operations,
    revisions,
)

NOT_DELETED = actions.c.deleted_at.is_(None)
# The condition of what a tick may decide, apart from the clock.
IS_LIVE = sa.and_(actions.c.active, NOT_DELETED)
IS_UNSTARTED = in_literals(operations.c.state, UNSTARTED)
IS_RUNNING = in_literals(operations.c.state, {OperationState.RUNNING})
# The condition of the index operations_overdue.
NEVER_STARTED = sa.and_(
    IS_UNSTARTED,
    operations.c.waiting_for.is_(None),
    operations.c.first_started_at.is_(None),
)
# Recorded by a tick and not started: overdue when it is old.
IS_EXPECTED = sa.and_(NEVER_STARTED, in_literals(operations.c.cause, TICKED))
# Recorded by the schedule for an instant that is not decided: the clock was ahead.
LIES_AHEAD = sa.and_(
    in_literals(operations.c.cause, {Cause.SCHEDULE}),
    sa.exists().where(
        action_cursor.c.action_uid == operations.c.action_uid,
        action_cursor.c.watermark < operations.c.occurrence_at,
    ),
)
# The attempt after which a pending operation was put back.
PUT_BACK_FROM = sa.and_(
    attempts.c.operation_id == operations.c.id, attempts.c.attempt == operations.c.attempt - 1
)
IS_OWED = in_literals(notices.c.state, {"owed"})
IS_ACTIVE_BACKFILL = in_literals(backfills.c.state, {"active"})
# The revision that an operation runs.
ITS_REVISION = sa.and_(
    revisions.c.action_uid == operations.c.action_uid,
    revisions.c.number == operations.c.revision,
)


def of_app(small_app_id: int | sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Return the condition of the actions of a small app that are not deleted."""
    return sa.and_(actions.c.small_app_id == small_app_id, NOT_DELETED)


def state_of(uid: UUID | sa.ColumnElement[UUID]) -> sa.ColumnElement[bool]:
    """Return the condition of the state of an action as a whole, not of one of its subjects."""
    return sa.and_(action_state.c.action_uid == uid, action_state.c.subject == "")
