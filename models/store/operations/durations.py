"""How long the last runs of actions took."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.bulk_sql import given
from models.tables import operations

_SHOWN = ("id", "occurrence_at", "state", "started_at", "finished_at")


def _newest(uid: sa.ColumnElement[UUID]) -> sa.Select[Any]:
    shown = sa.select(operations.c.action_uid, *(operations.c[name] for name in _SHOWN))
    ran = (operations.c.started_at.is_not(None), operations.c.finished_at.is_not(None))
    its_own = shown.where(operations.c.action_uid == uid, *ran)
    return its_own.order_by(operations.c.occurrence_at.desc())


def last_runs(
    connection: sa.Connection, uids: Sequence[UUID], limit: int
) -> dict[UUID, list[dict[str, Any]]]:
    """Return id, occurrence, state and duration of each action's last runs, the oldest first.

    Each action is looked up by itself: of all together, either store would read all runs.
    """
    found: dict[UUID, list[dict[str, Any]]] = {uid: [] for uid in uids}
    for row in _rows(connection, uids, limit):
        found[row.action_uid].insert(0, _run(row))
    return found


def _rows(connection: sa.Connection, uids: Sequence[UUID], limit: int) -> list[Any]:
    if connection.dialect.name != "postgresql":
        one = _newest(sa.bindparam("uid", type_=operations.c.action_uid.type)).limit(limit)
        return [row for uid in uids for row in connection.execute(one, {"uid": uid})]
    asked = given(operations, "action_uid")
    newest = _newest(asked.c.action_uid).limit(limit).lateral("newest")
    query = sa.select(newest).select_from(asked).join(newest, sa.true())
    rows = [{"action_uid": uid} for uid in uids]
    return list(connection.execute(query, {"given": rows}))


def _run(row: sa.Row[Any]) -> dict[str, Any]:
    seconds = max(0.0, (row.finished_at - row.started_at).total_seconds())
    return {"id": row.id, "at": row.occurrence_at, "state": row.state, "seconds": seconds}
