"""Find actions a page at a time, by words, owner and status."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from models.sql import byte_length, dicts, follows, is_among
from models.store.actions.status import listing, may_be_unhealthy
from models.store.conditions import NOT_DELETED, state_of
from models.store.scope import Scope
from models.tables import action_state, actions

_IN_ORDER = (actions.c.name, actions.c.small_app_id)


class Standing(StrEnum):
    """Which actions to list."""

    ACTIVE = "active"
    PAUSED = "paused"
    SET_ASIDE = "set aside"
    TROUBLED = "troubled"


@dataclass(frozen=True, slots=True)
class ActionFilter:
    """Which actions to list; an empty field admits all.

    Each word of `words` is in the name or in the owner. `after` is the name and the small app of
    the last row of the previous page.
    """

    scope: Scope
    words: Sequence[str] = ()
    owner: str | None = None
    standing: Standing | None = None
    after: tuple[str, int] | None = None


def page(
    connection: sa.Connection, wanted: ActionFilter, limit: int, overdue: timedelta
) -> list[dict[str, Any]]:
    """Return up to `limit` actions with their status, by name, then by small app."""
    # Only the status of those on the page is read.
    chosen = _among(connection, _chosen(wanted, overdue).limit(limit))
    return dicts(connection, listing(overdue).where(chosen).order_by(*_IN_ORDER))


def document_lengths(
    connection: sa.Connection, wanted: ActionFilter, limit: int, overdue: timedelta
) -> Sequence[int]:
    """Return how many bytes the documents of those on a page have, in its order."""
    lengths = _chosen(wanted, overdue).with_only_columns(
        byte_length(connection, actions.c.document)
    )
    return connection.execute(lengths.limit(limit)).scalars().all()


def _chosen(wanted: ActionFilter, overdue: timedelta) -> sa.Select[Any]:
    query = (
        sa.select(actions.c.uid)
        .outerjoin(action_state, state_of(actions.c.uid))
        .where(NOT_DELETED, wanted.scope.has(actions.c.small_app_id))
    )
    for word in wanted.words:
        query = query.where(
            actions.c.name.icontains(word, autoescape=True)
            | actions.c.owner.icontains(word, autoescape=True)
        )
    if wanted.owner is not None:
        query = query.where(actions.c.owner == wanted.owner)
    if wanted.standing is not None:
        query = query.where(_has(wanted.standing, overdue))
    if wanted.after is not None:
        query = query.where(follows(_IN_ORDER, wanted.after))
    return query.order_by(*_IN_ORDER)


def _among(connection: sa.Connection, chosen: sa.Select[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that an action is chosen.

    PostgreSQL gets the uids as an array, and plans for few; SQLite has no arrays.
    """
    if connection.dialect.name != "postgresql":
        return actions.c.uid.in_(chosen)
    return is_among(connection, actions.c.uid, connection.execute(chosen).scalars().all())


def _has(standing: Standing, overdue: timedelta) -> sa.ColumnElement[bool]:
    set_aside = actions.c.set_aside.is_not(None)
    match standing:
        case Standing.ACTIVE:
            return sa.and_(actions.c.active, ~set_aside)
        case Standing.PAUSED:
            return sa.and_(sa.not_(actions.c.active), ~set_aside)
        case Standing.SET_ASIDE:
            return set_aside
        case Standing.TROUBLED:
            return may_be_unhealthy(overdue)


def names_like(connection: sa.Connection, app_id: int, start: str, limit: int) -> list[str]:
    """Return the names of a small app's actions that begin so, in order."""
    its = (actions.c.small_app_id == app_id, actions.c.deleted_at.is_(None))
    named = sa.select(actions.c.name).where(*its, actions.c.name.startswith(start, autoescape=True))
    return list(connection.execute(named.order_by(actions.c.name).limit(limit)).scalars())
