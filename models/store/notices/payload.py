"""What a notice says of an operation."""

from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.tables import actions, operation_logs, operations, small_apps
from models.values import format_instant

MOST_LINES = 10
LONGEST_LINE = 500

_REPORTED = (
    sa.select(
        operations,
        actions.c.name.label("action"),
        small_apps.c.name.label("small_app"),
        operation_logs.c.lines,
    )
    .join(actions, actions.c.uid == operations.c.action_uid)
    .join(small_apps, small_apps.c.id == operations.c.small_app_id)
    .outerjoin(operation_logs, operation_logs.c.operation_id == operations.c.id)
    .where(operations.c.id == sa.bindparam("its_id"))
)
_INSTANTS = ("occurrence_at", "recorded_at", "first_started_at", "started_at", "finished_at")
_UNCHANGED = ("state", "reason", "error", "triggerer", "subject", "attempt", "queue")


def payload_of(connection: sa.Connection, operation_id: UUID) -> dict[str, Any]:
    """Return the reported facts about an operation as JSON, and its small app's id."""
    row = connection.execute(_REPORTED, {"its_id": operation_id}).mappings().one()
    lines = [one.get("message", "") for one in row["lines"] or []][-MOST_LINES:]
    return {
        "small_app_id": row["small_app_id"],
        "small_app": row["small_app"],
        "action": row["action"],
        "action_uid": str(row["action_uid"]),
        "operation_id": str(operation_id),
        **{key: row[key] for key in _UNCHANGED},
        **{key: row[key] and format_instant(row[key]) for key in _INSTANTS},
        "steps": [_step(one) for one in row["steps"] or []],
        "log": [str(line)[:LONGEST_LINE] for line in lines],
    }


def _step(story: dict[str, Any]) -> dict[str, Any]:
    keys = ("name", "state", "message", "error")
    return {key: story[key] for key in keys if story.get(key)}
