"""How far bulk requests got, by the key of the sender, so that repeating one does nothing twice.

The transaction that changes operations notes them here: a request that was killed goes on where it
stopped.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

import sqlalchemy as sa

from models.sql import database_now, insert_ignoring
from models.tables import bulk_requests


@dataclass(frozen=True, slots=True)
class Progress:
    """What is left of a bulk request: pairs of an action and its operation, those of one together.

    `left_out` has the reason of each operation that it did not change. `next` is the last operation
    that it looked at, if others match as well.
    """

    rest: tuple[tuple[UUID, UUID], ...]
    changed: tuple[UUID, ...] = ()
    left_out: Mapping[UUID, str] = field(default_factory=dict)
    next: UUID | None = None

    def after(self, count: int, changed: tuple[UUID, ...], left_out: Mapping[UUID, str]) -> Self:
        """Return the progress once the first `count` of the rest are worked off."""
        rest, both = self.rest[count:], {**self.left_out, **left_out}
        return type(self)(rest, self.changed + changed, both, self.next)

    @property
    def stored(self) -> dict[str, Any]:
        """The progress as JSON."""
        return {
            "rest": [[str(uid), str(id)] for uid, id in self.rest],
            "changed": [str(id) for id in self.changed],
            "left_out": {str(id): why for id, why in self.left_out.items()},
            "next": self.next and str(self.next),
        }


def begin(connection: sa.Connection, id: UUID, progress: Progress) -> None:
    """Store a new request; nothing happens if it is known."""
    values = {"id": id, "made_at": database_now(), "progress": progress.stored}
    connection.execute(insert_ignoring(connection, bulk_requests).values(values))


def find(connection: sa.Connection, id: UUID) -> Progress | None:
    """Return how far a request got; None if it is not known."""
    return _found(connection, _one(id))


def hold(connection: sa.Connection, id: UUID) -> Progress | None:
    """Return how far a request got; until this transaction ends, no other one gets further."""
    return _found(connection, _one(id).with_for_update())


def keep(connection: sa.Connection, id: UUID, progress: Progress) -> None:
    """Store how far a request got."""
    its = sa.update(bulk_requests).where(bulk_requests.c.id == id)
    connection.execute(its.values(progress=progress.stored))


def _one(id: UUID) -> sa.Select[Any]:
    return sa.select(bulk_requests.c.progress).where(bulk_requests.c.id == id)


def _found(connection: sa.Connection, query: sa.Select[Any]) -> Progress | None:
    stored = connection.execute(query).scalar_one_or_none()
    if stored is None:
        return None
    return Progress(
        tuple((UUID(uid), UUID(id)) for uid, id in stored["rest"]),
        tuple(map(UUID, stored["changed"])),
        {UUID(id): why for id, why in stored["left_out"].items()},
        stored["next"] and UUID(stored["next"]),
    )
