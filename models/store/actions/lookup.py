"""What a word may name among actions: their names, their owners, the tasks that they send."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from models.action.plan import Plan
from models.sql import dicts
from models.store.conditions import NOT_DELETED
from models.store.scope import Scope
from models.tables import SENDS_TASK, actions, small_apps

# Plans that may send such a task are read up to so many.
MOST_PLANS = 500


def named(
    connection: sa.Connection, scope: Scope, words: Sequence[str], limit: int
) -> list[dict[str, Any]]:
    """Return up to `limit` actions whose names have each of the words, by name."""
    query = _of(scope, actions.c.uid, actions.c.name, actions.c.owner)
    for word in words:
        query = query.where(actions.c.name.icontains(word, autoescape=True))
    return dicts(connection, query.order_by(actions.c.name, small_apps.c.name).limit(limit))


def owners(connection: sa.Connection, scope: Scope, text: str, limit: int) -> list[dict[str, Any]]:
    """Return up to `limit` owners with this text in their names, with how many actions each has."""
    query = (
        sa.select(actions.c.owner.label("name"), sa.func.count().label("actions"))
        .where(NOT_DELETED, scope.has(actions.c.small_app_id))
        .where(actions.c.owner.icontains(text, autoescape=True))
        .group_by(actions.c.owner)
    )
    return dicts(connection, query.order_by(actions.c.owner).limit(limit))


def sending(
    connection: sa.Connection, scope: Scope, text: str, limit: int
) -> tuple[list[dict[str, Any]], bool]:
    """Return up to `limit` actions that send a task with this text in its name, by name.

    Also return whether there may be more, since only so many plans with the text are read.
    """
    plan = sa.type_coerce(actions.c.plan, sa.Text)
    query = _of(scope, actions.c.uid, actions.c.name, actions.c.plan).where(sa.text(SENDS_TASK))
    # The text may also stand in the arguments: the plan itself is asked below.
    query = query.where(plan.icontains(text, autoescape=True))
    ordered = query.order_by(actions.c.name, small_apps.c.name).limit(MOST_PLANS)
    rows = [_sent(row) for row in dicts(connection, ordered)]
    its = [row for row in rows if text.casefold() in row["task"].casefold()]
    return its[:limit], len(rows) == MOST_PLANS


def _of(scope: Scope, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    query = sa.select(*columns, small_apps.c.name.label("app"))
    joined = query.join(small_apps, small_apps.c.id == actions.c.small_app_id)
    return joined.where(NOT_DELETED, scope.has(actions.c.small_app_id))


def _sent(row: dict[str, Any]) -> dict[str, Any]:
    plan = row.pop("plan")
    handed = plan.hand_over if isinstance(plan, Plan) else None
    sent = ("", None) if handed is None else (handed.task, handed.application)
    return {**row, "task": sent[0], "application": sent[1]}
