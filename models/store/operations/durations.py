"""How long the last runs of actions took."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.tables import operations

_SHOWN = ("id", "occurrence_at", "state", "started_at", "finished_at")
_OF_ONE = (
    sa.select(*(operations.c[name] for name in _SHOWN))
    .where(operations.c.action_uid == sa.bindparam("uid"))
    .where(operations.c.started_at.is_not(None), operations.c.finished_at.is_not(None))
    .order_by(operations.c.occurrence_at.desc())
)


def last_runs(
    connection: sa.Connection, uids: Sequence[UUID], limit: int
) -> dict[UUID, list[dict[str, Any]]]:
    """Return id, occurrence, state and duration of each action's last runs, the oldest first.

    One statement for each: for all together, either store would read all their runs.
    """
    query = _OF_ONE.limit(limit)
    return {uid: [*map(_run, connection.execute(query, {"uid": uid}))][::-1] for uid in uids}


def _run(row: sa.Row[Any]) -> dict[str, Any]:
    seconds = max(0.0, (row.finished_at - row.started_at).total_seconds())
    return {"id": row.id, "at": row.occurrence_at, "state": row.state, "seconds": seconds}
