"""The actions that do the work of jobs, found by the ids of the jobs."""

from typing import Any

import sqlalchemy as sa

from models.sql import dicts, follows
from models.store.conditions import state_of
from models.tables import IS_JOB, action_cursor, action_state, actions

# The order of a page.
IN_ORDER = (actions.c.job_id, actions.c.name)


def with_job(connection: sa.Connection, small_app_id: int, id: str) -> list[dict[str, Any]]:
    """Return job_id, name and plan of the small app's actions that are the work of a job."""
    query = _of_app(small_app_id).where(actions.c.job_id == id).order_by(actions.c.name)
    return dicts(connection, query)


def page(
    connection: sa.Connection, small_app_id: int, after: tuple[str, str] | None, limit: int
) -> list[dict[str, Any]]:
    """Return up to `limit` actions of jobs, with their status, by job_id, then by name.

    `after` are those of the last row of the previous page.
    """
    shown = (actions.c.uid, actions.c.small_app_id, action_cursor.c.next_occurrence_at)
    query = (
        _of_app(small_app_id)
        .add_columns(*shown, action_state.c.last_state)
        .join(action_cursor, action_cursor.c.action_uid == actions.c.uid)
        .outerjoin(action_state, state_of(actions.c.uid))
    )
    if after is not None:
        query = query.where(follows(IN_ORDER, after))
    return dicts(connection, query.order_by(*IN_ORDER).limit(limit))


def _of_app(small_app_id: int) -> sa.Select[Any]:
    # Written exactly as in the index of such actions.
    is_job = sa.text(IS_JOB)
    query = sa.select(actions.c.job_id, actions.c.name, actions.c.plan)
    return query.where(actions.c.small_app_id == small_app_id, is_job)
