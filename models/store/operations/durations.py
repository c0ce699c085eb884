"""How long the last runs of actions took."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.many_rows import Columns, read_each
from models.tables import operations

_SHOWN = ("id", "action_uid", "occurrence_at", "state", "started_at", "finished_at")


def last_runs(
    connection: sa.Connection, uids: Sequence[UUID], limit: int
) -> dict[UUID, list[dict[str, Any]]]:
    """Return id, occurrence, state and duration of each action's last runs, the oldest first."""
    rows = read_each(
        connection,
        operations,
        [{"uid": uid} for uid in uids],
        {"uid": "action_uid"},
        _of_one(limit),
    )
    found: dict[UUID, list[dict[str, Any]]] = {}
    for row in rows:
        seconds = max(0.0, (row.finished_at - row.started_at).total_seconds())
        run = {"id": row.id, "at": row.occurrence_at, "state": row.state, "seconds": seconds}
        found.setdefault(row.action_uid, []).insert(0, run)
    return found


@cache
def _of_one(limit: int) -> Callable[[Columns], sa.Select[Any]]:
    """Return the query of one action's runs: always the same object, so that it is made once."""
    return lambda given: (
        sa.select(*(operations.c[name] for name in _SHOWN))
        .where(operations.c.action_uid == given["uid"])
        .where(operations.c.started_at.is_not(None), operations.c.finished_at.is_not(None))
        .order_by(operations.c.occurrence_at.desc())
        .limit(limit)
    )
