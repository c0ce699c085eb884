"""Find actions a page at a time, by words, owner, task and status."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field
from pydantic_core import to_json

from models.celery_task import HANDED_OVER
from models.filters import Filter
from models.sql import begins_id, dicts, follows, in_many
from models.store.actions.status import listing, may_be_unhealthy
from models.store.conditions import NOT_DELETED, state_of
from models.store.scope import Scope
from models.tables import SENDS_TASK, action_state, actions

MOST_WORDS = 10
_BY_NAME = (actions.c.name, actions.c.small_app_id)
# The name and the small app of an action: its place in a list.
Place = tuple[str, int]


class Standing(StrEnum):
    """Which actions to list."""

    ACTIVE = "active"
    PAUSED = "paused"
    QUARANTINED = "quarantined"
    TROUBLED = "troubled"


class ActionFilter(Filter):
    """Which actions; without a value, all."""

    uid: tuple[UUID, ...] = Field((), description="With one of these uids.")
    q: str = Field("", description="Words: each is in the name or the owner, or begins the uid.")
    owner: str | None = Field(None, description="Of this owner.")
    task: str | None = Field(None, description="That send this Celery task.")
    standing: Standing | None = Field(None, description="Of this status; `troubled` is unhealthy.")


class Asked(NamedTuple):
    """The actions of a scope that a filter admits, those after a place only."""

    scope: Scope
    filter: ActionFilter
    after: Place | None = None


def page(
    connection: sa.Connection,
    asked: Asked,
    limit: int,
    *,
    has_documents: bool = False,
) -> list[dict[str, Any]]:
    """Return up to `limit` actions with their status, by name and small app.

    They have their documents only if asked for.
    """
    # Only the status of those on the page is read.
    return of_uids(connection, uids(connection, asked, limit), has_documents=has_documents)


def uids(connection: sa.Connection, asked: Asked, limit: int) -> Sequence[UUID]:
    """Return the uids of up to `limit` actions, by name and small app."""
    return connection.execute(_chosen(asked).limit(limit)).scalars().all()


def of_uids(
    connection: sa.Connection, uids: Collection[UUID], *, has_documents: bool = False
) -> list[dict[str, Any]]:
    """Return the actions of these uids with their status, by name and small app."""
    found = listing(has_documents=has_documents)
    found = found.where(in_many(connection, actions.c.uid, list(uids)))
    return dicts(connection, found.order_by(*_BY_NAME))


def count(connection: sa.Connection, asked: Asked, most: int) -> int:
    """Return how many actions match; counts up to `most`."""
    every = _chosen(asked).limit(most)
    counted = sa.select(sa.func.count()).select_from(every.subquery())
    found: int = connection.execute(counted).scalar_one()
    return found


def _chosen(asked: Asked) -> sa.Select[Any]:
    wanted = asked.filter
    query = (
        sa.select(actions.c.uid)
        .outerjoin(action_state, state_of(actions.c.uid))
        .where(NOT_DELETED, asked.scope.has(actions.c.small_app_id))
        .where(*map(_matches, wanted.q.split()[:MOST_WORDS]))
    )
    if wanted.uid:
        query = query.where(actions.c.uid.in_(wanted.uid))
    if wanted.owner is not None:
        query = query.where(actions.c.owner == wanted.owner)
    if wanted.task is not None:
        query = query.where(sa.text(SENDS_TASK), _sends(wanted.task))
    if wanted.standing is not None:
        query = query.where(_has(wanted.standing))
    if asked.after is not None:
        query = query.where(follows(_BY_NAME, asked.after))
    return query.order_by(*_BY_NAME)


def _matches(word: str) -> sa.ColumnElement[bool]:
    named = (one.icontains(word, autoescape=True) for one in (actions.c.name, actions.c.owner))
    return sa.or_(*named, begins_id(actions.c.uid, word))


def _sends(task: str) -> sa.ColumnElement[bool]:
    """Return the condition that a plan sends this Celery task: its name stands first there."""
    handed_over = HANDED_OVER + '"task":' + to_json(task).decode()
    return sa.type_coerce(actions.c.plan, sa.Text).contains(handed_over, autoescape=True)


def _has(standing: Standing) -> sa.ColumnElement[bool]:
    quarantined = actions.c.quarantined.is_not(None)
    match standing:
        case Standing.ACTIVE:
            return sa.and_(actions.c.active, ~quarantined)
        case Standing.PAUSED:
            return sa.and_(sa.not_(actions.c.active), ~quarantined)
        case Standing.QUARANTINED:
            return quarantined
        case Standing.TROUBLED:
            return may_be_unhealthy()
