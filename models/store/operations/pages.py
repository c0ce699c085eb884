"""Operations a page at a time, of one small app or of several."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.sql import parts_of
from models.store.operations import by_ids, in_states
from models.store.scope import Scope
from models.tables import actions, operations, small_apps

# How many parts a statement has: SQLite takes at most 500, and each takes time to plan.
APPS_AT_ONCE = 100
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


def page(connection: sa.Connection, wanted: Wanted, limit: int) -> list[dict[str, Any]]:
    """Return up to `limit` operations, the last recorded first, then the last occurrence."""
    ids = ids_of_page(connection, wanted, limit)
    found = {row["id"]: row for row in by_ids(connection, ids)}
    return [found[id] for id in ids if id in found]


def ids_of_page(connection: sa.Connection, wanted: Wanted, limit: int) -> list[UUID]:
    """Return the ids of the operations of a page, in its order."""
    app_id = wanted.scope.small_app_id
    if app_id is not None:
        return [place.id for place in _places(connection, wanted, [app_id], limit)]
    return [place.id for place in _places_of_all(connection, wanted, limit)]


def _places_of_all(connection: sa.Connection, wanted: Wanted, limit: int) -> list[sa.Row[Any]]:
    """Return a page of all small apps: each one's part is read by its index, then they are merged.

    The last operations of the apps tell which of them can have one on the page.
    """
    lasts = connection.execute(_last_of_each(wanted).limit(limit)).all()
    places: list[sa.Row[Any]] = []
    for some in parts_of(lasts, APPS_AT_ONCE):
        if len(places) == limit and _in_order(places[-1]) > _in_order(some[0]):
            break
        places += _places(connection, wanted, [one.small_app_id for one in some], limit)
        places = sorted(places, key=_in_order, reverse=True)[:limit]
    return places


def _last_of_each(wanted: Wanted) -> sa.Select[Any]:
    """Return the last recorded operation of each small app that has one, in order."""
    of_app = _wanted(sa.select(operations.c.id), wanted, small_apps.c.id)
    last = of_app.order_by(*_last_first(operations)).limit(1).correlate(small_apps)
    apps = sa.select(last.scalar_subquery().label("last")).where(small_apps.c.deleted_at.is_(None))
    lasts, one = apps.subquery("lasts"), operations.alias()
    found = sa.select(one.c.small_app_id, *(one.c[column.name] for column in IN_ORDER))
    return found.join(lasts, lasts.c.last == one.c.id).order_by(*_last_first(one))


def _places(
    connection: sa.Connection, wanted: Wanted, small_app_ids: Sequence[int], limit: int
) -> Sequence[sa.Row[Any]]:
    """Return id and instants of up to `limit` operations of these apps, in order."""
    parts = [
        _wanted(sa.select(*IN_ORDER), wanted, sa.literal(app_id))
        .order_by(*_last_first(operations))
        .limit(limit)
        .subquery(f"of_{app_id}")
        for app_id in small_app_ids
    ]
    both = sa.union_all(*(sa.select(part) for part in parts)).subquery("both")
    ordered = sa.select(both).order_by(*_last_first(both))
    return connection.execute(ordered.limit(limit)).all()


def _last_first(source: sa.FromClause) -> list[sa.ColumnElement[Any]]:
    return [source.c[column.name].desc() for column in IN_ORDER]


def _in_order(row: sa.Row[Any]) -> tuple[datetime, datetime, str]:
    return row.recorded_at, row.occurrence_at, str(row.id)


def _wanted(query: sa.Select[Any], wanted: Wanted, app_id: sa.ColumnElement[int]) -> sa.Select[Any]:
    query = query.where(operations.c.small_app_id == app_id)
    if wanted.words:
        named = [actions.c.name.icontains(word, autoescape=True) for word in wanted.words]
        uids = sa.select(actions.c.uid).where(actions.c.small_app_id == app_id, *named)
        uids = uids.correlate(small_apps)
        query = query.where(operations.c.action_uid.in_(uids))
    query = _matching(query, wanted)
    if wanted.after is not None:
        last = _place_of(wanted.scope, wanted.after)
        # As one comparison: the index leads to the page, however many come before it.
        query = query.where(sa.tuple_(*IN_ORDER) < sa.tuple_(*last))
    return query


def _matching(query: sa.Select[Any], wanted: Wanted) -> sa.Select[Any]:
    if wanted.uid is not None:
        query = query.where(operations.c.action_uid == wanted.uid)
    if wanted.state:
        query = query.where(in_states(wanted.state))
    if wanted.cause:
        query = query.where(operations.c.cause.in_(wanted.cause))
    if wanted.task is not None:
        query = query.where(operations.c.task == wanted.task)
    if wanted.reason:
        why = (operations.c.reason, operations.c.error)
        query = query.where(sa.or_(*(one.icontains(wanted.reason, autoescape=True) for one in why)))
    if wanted.since is not None:
        query = query.where(operations.c.recorded_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(operations.c.recorded_at < wanted.until)
    return query


def _place_of(scope: Scope, id: UUID) -> list[sa.ColumnElement[Any]]:
    """Return an operation's place by its id."""
    one = operations.alias()
    is_one = (one.c.id == id, scope.has(one.c.small_app_id))
    return [sa.select(one.c[column.name]).where(*is_one).scalar_subquery() for column in IN_ORDER]
