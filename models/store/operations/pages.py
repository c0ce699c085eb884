"""Operations a page at a time, of one small app or of several."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.sql import is_among
from models.store.operations import by_ids, in_states, with_names
from models.tables import actions, operations

# The parts of a statement: SQLite takes at most 500, and each takes time to plan.
APPS_AT_ONCE = 100
# A manual run's occurrence is a whole second, which may begin after its record.
RECORDED_BEFORE = timedelta(minutes=1)
# The order of a page is the opposite; a tick records many at the same instant.
IN_ORDER = (operations.c.recorded_at, operations.c.occurrence_at, operations.c.id)
NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which operations of some small apps to list; an empty field admits all.

    Each of `words` is in the name of the action. Recorded in [since, until); `after` is the id of
    the last operation of the page before. Of occurrences from `occurred_since` on.
    """

    small_app_ids: Sequence[int]
    uid: UUID | None = None
    words: Sequence[str] = ()
    states: Collection[str] = ()
    causes: Collection[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    after: UUID | None = None
    occurred_since: datetime | None = None


def page(connection: sa.Connection, wanted: Wanted, limit: int) -> list[dict[str, Any]]:
    """Return up to `limit` operations, the last recorded first, then the last occurrence."""
    if len(wanted.small_app_ids) != 1:
        return _of_several(connection, wanted, limit)
    query = _wanted(with_names(), connection, wanted, wanted.small_app_ids[0])
    ordered = query.order_by(*(one.desc() for one in IN_ORDER)).limit(limit)
    return [dict(row._mapping) for row in connection.execute(ordered)]


def newest(connection: sa.Connection, wanted: Wanted, limit: int) -> list[dict[str, Any]]:
    """Return the operations of a page, the last occurrence first, then by id."""
    by_id = sorted(page(connection, wanted, limit), key=lambda row: str(row["id"]))
    return sorted(by_id, key=lambda row: row["occurrence_at"] or NEVER, reverse=True)


def _of_several(connection: sa.Connection, wanted: Wanted, limit: int) -> list[dict[str, Any]]:
    """Return a page of several apps: each one's part is read by its index, then they are merged."""
    apps = wanted.small_app_ids
    places = [
        place
        for first in range(0, len(apps), APPS_AT_ONCE)
        for place in _places(connection, wanted, apps[first : first + APPS_AT_ONCE], limit)
    ]
    ordered = sorted(places, key=_place_in_order, reverse=True)
    ids = [place.id for place in ordered[:limit] if isinstance(place.id, UUID)]
    found = {row["id"]: row for row in by_ids(connection, ids)}
    return [found[id] for id in ids if id in found]


def _places(
    connection: sa.Connection, wanted: Wanted, small_app_ids: Sequence[int], limit: int
) -> Sequence[Any]:
    """Return id and instants of up to `limit` operations of these apps, in order."""
    parts = [
        _wanted(sa.select(*IN_ORDER), connection, wanted, app_id)
        .order_by(*(one.desc() for one in IN_ORDER))
        .limit(limit)
        .subquery(f"of_{app_id}")
        for app_id in small_app_ids
    ]
    both = sa.union_all(*(sa.select(part) for part in parts)).subquery("both")
    ordered = sa.select(both).order_by(*(both.c[one.name].desc() for one in IN_ORDER))
    return connection.execute(ordered.limit(limit)).all()


def _place_in_order(row: sa.Row[Any]) -> tuple[datetime, datetime, str]:
    return row.recorded_at or NEVER, row.occurrence_at or NEVER, str(row.id)


def _wanted(
    query: sa.Select[Any], connection: sa.Connection, wanted: Wanted, app_id: int
) -> sa.Select[Any]:
    query = query.where(operations.c.small_app_id == app_id)
    if wanted.uid is not None:
        query = query.where(operations.c.action_uid == wanted.uid)
    if wanted.words:
        named = [actions.c.name.icontains(word, autoescape=True) for word in wanted.words]
        uids = sa.select(actions.c.uid).where(actions.c.small_app_id == app_id, *named)
        query = query.where(operations.c.action_uid.in_(uids))
    if wanted.states:
        query = query.where(in_states(wanted.states))
    if wanted.causes:
        query = query.where(operations.c.cause.in_(wanted.causes))
    query = _in_time(query, wanted)
    if wanted.after is not None:
        last = _place_of(connection, wanted.small_app_ids, wanted.after)
        # As one comparison: the index leads to the page, however many come before it.
        query = query.where(sa.tuple_(*IN_ORDER) < sa.tuple_(*last))
    return query


def _in_time(query: sa.Select[Any], wanted: Wanted) -> sa.Select[Any]:
    at = operations.c.recorded_at
    if wanted.since is not None:
        query = query.where(at >= wanted.since)
    if wanted.until is not None:
        query = query.where(at < wanted.until)
    if wanted.occurred_since is not None:
        query = query.where(operations.c.occurrence_at >= wanted.occurred_since)
        # Nothing is recorded before it is due: what is older is not read.
        query = query.where(at >= wanted.occurred_since - RECORDED_BEFORE)
    return query


def _place_of(
    connection: sa.Connection, small_app_ids: Sequence[int], id: UUID
) -> list[sa.ColumnElement[Any]]:
    """Return an operation's place as it is stored: its instants may be unreadable."""
    one = operations.alias()
    is_one = (one.c.id == id, is_among(connection, one.c.small_app_id, list(small_app_ids)))
    return [sa.select(one.c[column.name]).where(*is_one).scalar_subquery() for column in IN_ORDER]
