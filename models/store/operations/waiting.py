"""Count the operations that wait to start, against the limit of each small app."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from models.operation import UNSTARTED
from models.sql import stands_in
from models.tables import operations

_IS_UNSTARTED = stands_in(operations.c.state, UNSTARTED)


def room(connection: sa.Connection, small_app_id: int, most: int) -> int:
    """Return how many more operations of the small app may wait, or a part of that many."""
    total = _total(connection, most)
    return most - (total if total <= most // 2 else counted(connection).get(small_app_id, 0))


def within(
    connection: sa.Connection, rows: Sequence[dict[str, Any]], most: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return those new operations that may wait, and those beyond the limit of their apps.

    While all that waits in the installation is within the limit, so is each app: that is read from
    an index of what waits, and nothing else. 0 is no limit.
    """
    if not most or not rows or _total(connection, most) + len(rows) <= most:
        return list(rows), []
    waiting = counted(connection)
    kept: list[dict[str, Any]] = []
    beyond: list[dict[str, Any]] = []
    for row in rows:
        app = row["small_app_id"]
        waiting[app] = waiting.get(app, 0) + 1
        (kept if waiting[app] <= most else beyond).append(row)
    return kept, beyond


def counted(connection: sa.Connection) -> dict[int, int]:
    """Return how many operations of each small app wait to start."""
    return {row.app: row.number for row in connection.execute(counting())}


def counting() -> sa.Select[Any]:
    """Return the query of `app` and the `number` of its operations that wait to start."""
    # Not the column itself: SQLite would read all operations in the order of an index on it.
    app = (operations.c.small_app_id + 0).label("app")
    return sa.select(app, sa.func.count().label("number")).where(_IS_UNSTARTED).group_by(app)


def _total(connection: sa.Connection, most: int) -> int:
    """Return how many operations wait to start, at most `most`."""
    some = sa.select(sa.literal(1)).select_from(operations).where(_IS_UNSTARTED).limit(most)
    return connection.execute(sa.select(sa.func.count()).select_from(some.subquery())).scalar_one()
