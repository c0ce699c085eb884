"""Take the default time limit from stored plans of `celery_task`: tasks have limits of their own."""

import json
from typing import Any

import sqlalchemy as sa

# As plans write a span that no task lasts; code of the last release reads it too.
NONE = "P36500D"
_HANDED_OVER = '%"hand_over":{%'


def take_default_limits(connection: sa.Connection) -> None:
    """Rewrite the plans of actions, and of all their revisions, that wrote no limit."""
    for name, *key in (("actions", "uid"), ("revisions", "action_uid", "number")):
        table = sa.table(name, *map(sa.column, (*key, "document", "plan")))
        stored = sa.select(table).where(table.c.plan.like(_HANDED_OVER))
        for row in connection.execute(stored).mappings().all():
            plan = _without_limit(row["document"], row["plan"])
            if plan is not None:
                own = [table.c[column] == row[column] for column in key]
                connection.execute(sa.update(table).where(*own).values(plan=plan))


def _without_limit(document: str, plan: str) -> str | None:
    try:
        policy: Any = json.loads(document).get("policy") or {}
        planned = json.loads(plan)
        if policy.get("time_limit") is not None or planned["hand_over"] is None:
            return None
        return json.dumps(
            {**planned, "time_limit": NONE}, separators=(",", ":"), ensure_ascii=False
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        # Broken by hand; what mends it plans it anew.
        return None
