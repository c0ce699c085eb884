"""Operations by how long they took, or how late they began: the newest that match, sorted.

No index has these orders, so they are made of a bounded number of the newest operations.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import sqlalchemy as sa

from models.operation import REQUESTED
from models.sql import is_among
from models.store.operations.pages import OperationFilter, ids_of_page
from models.tables import operations

MOST_SORTED = 1_000
# In place of seconds: it comes last.
NEVER_BEGAN = -1.0


class OperationOrder(StrEnum):
    """The order of a list: the last recorded first, the longest, or the latest to begin."""

    TIME = "time"
    DURATION = "duration"
    LATENESS = "lateness"


@dataclass(frozen=True, slots=True, order=True)
class Rank:
    """Where an operation stands in an order: the highest comes first."""

    seconds: float
    id: UUID


def ranks(
    connection: sa.Connection, wanted: OperationFilter, order: OperationOrder, now: datetime
) -> list[Rank]:
    """Return the places of the newest operations that match, in order.

    `now` is the instant of the first page: later pages see what was recorded until then, what ran
    then lasts until then, and what began later has not begun. So none moves to another page, unless
    it is retried meanwhile.
    """
    until = now if wanted.until is None else min(now, wanted.until)
    ids = ids_of_page(connection, replace(wanted, until=until, after=None), MOST_SORTED)
    return sorted(_ranks(connection, ids, order, now), reverse=True)


def _ranks(
    connection: sa.Connection, ids: list[UUID], order: OperationOrder, now: datetime
) -> Iterator[Rank]:
    named = ("id", "cause", "occurrence_at", "first_started_at", "started_at", "finished_at")
    read = sa.select(*(operations.c[name] for name in named))
    for row in connection.execute(read.where(is_among(connection, operations.c.id, ids))):
        if order is OperationOrder.LATENESS:
            since = None if row.cause in REQUESTED else row.occurrence_at
            begun_at = until = row.first_started_at
        else:
            begun_at = since = row.started_at
            until = min(row.finished_at or now, now)
        is_begun = begun_at is not None and begun_at <= now
        yield Rank(_between(since, until) if is_begun else NEVER_BEGAN, row.id)


def _between(since: datetime | None, until: datetime) -> float:
    """Return the seconds between two instants; as for what never began without the first."""
    return NEVER_BEGAN if since is None else max(0.0, (until - since).total_seconds())
