"""Operations a page at a time, of one small app or of several."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.store.operations import by_ids, in_states
from models.store.pauses import listed_queue
from models.store.scope import Scope
from models.tables import actions, operations, small_apps

# The order of a page is the opposite; a tick records many at the same instant.
IN_ORDER = (operations.c.recorded_at, operations.c.occurrence_at, operations.c.id)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which operations in a scope to list; an empty field admits all.

    Each of `words` is in the name of the action. The operations were recorded in [since, until).
    `reason` is a part of why one is in its state, or of its error. `after` is the id of the last
    operation of the previous page.
    """

    scope: Scope
    uid: UUID | None = None
    words: Sequence[str] = ()
    state: Collection[str] = ()
    cause: Collection[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    after: UUID | None = None
    reason: str | None = None
    task: str | None = None
    queue: str | None = None


def page(connection: sa.Connection, wanted: Wanted, limit: int) -> list[dict[str, Any]]:
    """Return up to `limit` operations, the last recorded first, then the last occurrence."""
    ids = ids_of_page(connection, wanted, limit)
    found = {row["id"]: row for row in by_ids(connection, ids)}
    return [found[id] for id in ids if id in found]


def ids_of_page(connection: sa.Connection, wanted: Wanted, limit: int) -> list[UUID]:
    """Return the ids of the operations of a page, in its order."""
    query = _matching(sa.select(operations.c.id).where(_of_apps(wanted.scope)), wanted)
    if wanted.words:
        named = [actions.c.name.icontains(word, autoescape=True) for word in wanted.words]
        uids = sa.select(actions.c.uid).where(wanted.scope.has(actions.c.small_app_id), *named)
        query = query.where(operations.c.action_uid.in_(uids))
    if wanted.after is not None:
        # As one comparison: the index leads to the page, however many come before it.
        query = query.where(sa.tuple_(*IN_ORDER) < sa.tuple_(*_place_of(wanted)))
    last_first = (column.desc() for column in IN_ORDER)
    return list(connection.execute(query.order_by(*last_first).limit(limit)).scalars())


def _of_apps(scope: Scope) -> sa.ColumnElement[bool]:
    """Return the condition of the small apps in a scope; of the installation, those that exist."""
    if scope.small_app_id is not None:
        return operations.c.small_app_id == scope.small_app_id
    # Not the apps that exist: for those SQLite would read, and sort, all operations of each.
    gone = sa.select(small_apps.c.id).where(small_apps.c.deleted_at.is_not(None))
    return operations.c.small_app_id.not_in(gone)


def _matching(query: sa.Select[Any], wanted: Wanted) -> sa.Select[Any]:
    same = (
        (operations.c.action_uid, wanted.uid),
        (operations.c.task, wanted.task),
        (sa.type_coerce(listed_queue(operations.c), operations.c.queue.type), wanted.queue),
    )
    for column, value in same:
        if value is not None:
            query = query.where(column == value)
    if wanted.state:
        query = query.where(in_states(wanted.state))
    if wanted.cause:
        query = query.where(operations.c.cause.in_(wanted.cause))
    if wanted.reason:
        why = (operations.c.reason, operations.c.error)
        query = query.where(sa.or_(*(one.icontains(wanted.reason, autoescape=True) for one in why)))
    if wanted.since is not None:
        query = query.where(operations.c.recorded_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(operations.c.recorded_at < wanted.until)
    return query


def _place_of(wanted: Wanted) -> list[sa.ColumnElement[Any]]:
    """Return the place of the last operation of the previous page, by its id."""
    one = operations.alias()
    is_one = (one.c.id == wanted.after, wanted.scope.has(one.c.small_app_id))
    return [sa.select(one.c[column.name]).where(*is_one).scalar_subquery() for column in IN_ORDER]
