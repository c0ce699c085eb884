"""Find actions a page at a time, by words, owner and status."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from pydantic_core import to_json

from models.celery_task import HANDED_OVER
from models.column_types import UTCDateTime
from models.errors import Refused
from models.sql import begins_id, byte_length, dicts, follows, is_among
from models.store.actions.status import listing, may_be_unhealthy
from models.store.conditions import NOT_DELETED, state_of
from models.store.scope import Scope
from models.tables import SENDS_TASK, action_cursor, action_state, actions

# An order that no index has is made of at most so many actions.
MOST_SORTED = 20_000
_BY_NAME = (actions.c.name, actions.c.small_app_id)
# Where an action stands that has no instant: behind all that have one.
_NEVER_NEXT = datetime(9999, 1, 1, tzinfo=UTC)
_NEVER_RAN = datetime(1970, 1, 1, tzinfo=UTC)


class Standing(StrEnum):
    """Which actions to list."""

    ACTIVE = "active"
    PAUSED = "paused"
    SET_ASIDE = "set aside"
    TROUBLED = "troubled"


class ActionOrder(StrEnum):
    """The order of a list: by name, the next run first, or the last run first."""

    NAME = "name"
    NEXT = "next"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands in an order; `at` is the instant that it is ordered by, if any."""

    name: str
    small_app_id: int
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ActionFilter:
    """Which actions to list; an empty field admits all.

    Each word of `words` is in the name or in the owner, or begins the uid. `task` is the Celery
    task that the action sends. `after` is the place of the last row of the previous page.
    """

    scope: Scope
    words: Sequence[str] = ()
    owner: str | None = None
    task: str | None = None
    standing: Standing | None = None
    after: Place | None = None
    order: ActionOrder = ActionOrder.NAME


def place_of(row: Mapping[str, Any], order: ActionOrder) -> Place:
    """Return where a row of a page stands in an order."""
    at = None
    if order is ActionOrder.NEXT:
        is_paused = not row["active"] and row["set_aside"] is None
        at = (None if is_paused else row["next_occurrence_at"]) or _NEVER_NEXT
    elif order is ActionOrder.LAST:
        at = row["last_run_at"] or _NEVER_RAN
    return Place(row["name"], row["small_app_id"], at)


def page(
    connection: sa.Connection,
    wanted: ActionFilter,
    limit: int,
    overdue: timedelta,
    *,
    has_documents: bool = False,
) -> list[dict[str, Any]]:
    """Return up to `limit` actions with their status, in their order, then by name and small app.

    They have their documents only if asked for. Raises Refused if an order that no index has is
    asked of more than MOST_SORTED.
    """
    if wanted.order is not ActionOrder.NAME:
        _check_number(connection, wanted, overdue)
    # Only the status of those on the page is read.
    chosen = _among(connection, _chosen(wanted, overdue).limit(limit))
    found = listing(overdue, has_documents=has_documents).where(chosen)
    return dicts(connection, found.order_by(*_in_order(wanted.order)))


def count(connection: sa.Connection, wanted: ActionFilter, most: int, overdue: timedelta) -> int:
    """Return how many actions match, from the first page on; counts up to `most`."""
    every = _chosen(replace(wanted, after=None, order=ActionOrder.NAME), overdue).limit(most)
    counted = sa.select(sa.func.count()).select_from(every.subquery())
    found: int = connection.execute(counted).scalar_one()
    return found


def _check_number(connection: sa.Connection, wanted: ActionFilter, overdue: timedelta) -> None:
    if count(connection, wanted, MOST_SORTED + 1, overdue) > MOST_SORTED:
        raise Refused(
            f"more than {MOST_SORTED:,} actions match, too many to sort by '{wanted.order}'; "
            "sort by name, or name a small app or a part of the name"
        )


def _instant(order: ActionOrder) -> sa.ColumnElement[datetime]:
    """Return what an order that no index has sorts by."""
    if order is ActionOrder.LAST:
        return _or(action_state.c.last_run_at, _NEVER_RAN)
    is_shown = actions.c.active | actions.c.set_aside.is_not(None)
    return _or(sa.case((is_shown, action_cursor.c.next_occurrence_at)), _NEVER_NEXT)


def _or(column: sa.ColumnElement[Any], never: datetime) -> sa.ColumnElement[datetime]:
    return sa.func.coalesce(column, sa.literal(never, UTCDateTime()), type_=UTCDateTime())


def _in_order(order: ActionOrder) -> tuple[sa.ColumnElement[Any], ...]:
    if order is ActionOrder.NAME:
        return _BY_NAME
    at = _instant(order)
    return (at.desc() if order is ActionOrder.LAST else at, *_BY_NAME)


def _is_after(order: ActionOrder, place: Place) -> sa.ColumnElement[bool]:
    behind = follows(_BY_NAME, (place.name, place.small_app_id))
    if order is ActionOrder.NAME or place.at is None:
        return behind
    at, last = _instant(order), sa.literal(place.at, UTCDateTime())
    return (at < last if order is ActionOrder.LAST else at > last) | (at == last) & behind


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
    if wanted.order is ActionOrder.NEXT:
        query = query.join(action_cursor, action_cursor.c.action_uid == actions.c.uid)
    for word in wanted.words:
        query = query.where(_matches(word))
    if wanted.owner is not None:
        query = query.where(actions.c.owner == wanted.owner)
    if wanted.task is not None:
        query = query.where(sa.text(SENDS_TASK), _sends(wanted.task))
    if wanted.standing is not None:
        query = query.where(_has(wanted.standing, overdue))
    if wanted.after is not None:
        query = query.where(_is_after(wanted.order, wanted.after))
    return query.order_by(*_in_order(wanted.order))


def _matches(word: str) -> sa.ColumnElement[bool]:
    named = (one.icontains(word, autoescape=True) for one in (actions.c.name, actions.c.owner))
    return sa.or_(*named, begins_id(actions.c.uid, word))


def _sends(task: str) -> sa.ColumnElement[bool]:
    """Return the condition that a plan sends this Celery task: its name stands first there."""
    handed_over = HANDED_OVER + '"task":' + to_json(task).decode()
    return sa.type_coerce(actions.c.plan, sa.Text).contains(handed_over, autoescape=True)


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
