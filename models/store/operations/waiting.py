"""Count the operations that wait to start, against the limit of each small app."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from models.store.conditions import IS_UNSTARTED
from models.tables import operations

Rows = Sequence[dict[str, Any]]


def room(connection: sa.Connection, small_app_id: int, most: int) -> int:
    """Return how many more operations of the small app may wait, or a part of that many."""
    found = Room(most)
    found.look(connection)
    return found.free(small_app_id)


@dataclass
class Room:
    """Divides new operations into those that may wait and those beyond the limit of their apps.

    To avoid counting for each batch, a caller may use half of an app's free places without a new
    look; the other half is for other processes that record at the same time.
    """

    # The limit of each app; 0 is none.
    most: int
    # At the last look: how many waited, and how many of each app if that was read.
    _total: int = field(init=False)
    _of_each: Mapping[int, int] | None = None
    # How many the caller has recorded since then.
    _taken: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._total = self.most

    def free(self, app: int) -> int:
        """Return how many more operations of the app might wait at the last look, or fewer."""
        return self.most - (self._total if self._of_each is None else self._of_each.get(app, 0))

    def look(self, connection: sa.Connection) -> None:
        """Count what waits; for each app only if the sum of all comes near the limit.

        The sum is read from an index that holds only what waits.
        """
        self._total = _total(connection, self.most)
        self._of_each = counted(connection) if self._total > self.most // 2 else None
        self._taken.clear()

    def within(self, connection: sa.Connection, rows: Rows) -> tuple[Rows, Rows]:
        """Return those new operations that may wait, and those beyond the limit."""
        if not self.most:
            return rows, []
        asked = Counter(row["small_app_id"] for row in rows)
        if all(self._taken[app] + count <= self.free(app) // 2 for app, count in asked.items()):
            self._taken += asked
            return rows, []
        self.look(connection)
        kept: list[dict[str, Any]] = []
        beyond: list[dict[str, Any]] = []
        for row in rows:
            app = row["small_app_id"]
            self._taken[app] += 1
            (kept if self._taken[app] <= self.free(app) else beyond).append(row)
        return kept, beyond


def counted(connection: sa.Connection) -> dict[int, int]:
    """Return how many operations of each small app wait to start."""
    return {row.app: row.number for row in connection.execute(counting())}


def counting() -> sa.Select[Any]:
    """Return the query of `app` and the `number` of its operations that wait to start."""
    # Not the column itself: SQLite would read all operations in the order of an index on it.
    app = (operations.c.small_app_id + 0).label("app")
    return sa.select(app, sa.func.count().label("number")).where(IS_UNSTARTED).group_by(app)


def _total(connection: sa.Connection, most: int) -> int:
    """Return how many operations wait to start, at most `most`."""
    some = sa.select(sa.literal(1)).select_from(operations).where(IS_UNSTARTED).limit(most)
    return connection.execute(sa.select(sa.func.count()).select_from(some.subquery())).scalar_one()
