"""What is paused: everything, a small app, or a queue. What is due is recorded, and not sent.

The reserving query leaves out what a pause covers, and a take of it puts it back. Ended pauses stay
as rows.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from models.sql import Columns, database_now, in_literals, in_many, insert_ignoring
from models.store.conditions import IS_UNSTARTED
from models.store.scope import WHOLE_INSTALLATION, Scope
from models.tables import operations, pauses
from models.worker_kinds import HTTP, OURS


class PauseKind(StrEnum):
    """What can be paused."""

    ALL = "all"
    APP = "app"
    QUEUE = "queue"


class Target(NamedTuple):
    """What a pause covers; a queue has its name where queues of all worker kinds are listed."""

    kind: PauseKind
    name: str = ""
    small_app_id: int | None = None

    @property
    def words(self) -> str:
        """What it is, in words."""
        return {
            PauseKind.ALL: "everything",
            PauseKind.APP: f"small app {self.name}",
            PauseKind.QUEUE: f"queue {self.name}",
        }[self.kind]

    def covers(self, small_app_id: int, queue: str) -> bool:
        """Return whether it has the operations of a small app in a queue, as listed."""
        return {
            PauseKind.ALL: True,
            PauseKind.APP: self.small_app_id == small_app_id,
            PauseKind.QUEUE: self.name == queue,
        }[self.kind]


class Pause(NamedTuple):
    """A pause in [began_at, until); `until` None for one that a person must end."""

    kind: PauseKind
    name: str
    small_app_id: int | None
    by: str
    reason: str | None
    began_at: datetime
    until: datetime | None
    ended_at: datetime | None
    ended_by: str | None

    def concerns(self, small_app_id: int | None) -> bool:
        """Return whether a request for a small app may know it; None is the installation."""
        return small_app_id in {None, self.small_app_id} or self.kind is PauseKind.ALL

    @property
    def target(self) -> Target:
        """What it covers."""
        return Target(self.kind, self.name, self.small_app_id)


_PAUSE = tuple(pauses.c[name] for name in Pause._fields)
ENDS_AT = sa.func.coalesce(pauses.c.ended_at, pauses.c.until)
IS_OPEN = pauses.c.ended_at.is_(None)
# The others are read by no statement of a tick.
IN_FORCE = IS_OPEN & (pauses.c.until.is_(None) | (pauses.c.until > database_now()))


def listed_queue(row: Columns) -> sa.ColumnElement[str]:
    """Return the name of an operation's queue where those of all worker kinds are listed."""
    prefixes = [
        (in_literals(row["task"], worker_kind.tasks), sa.literal(worker_kind.prefix) + row["queue"])
        for worker_kind in (HTTP, OURS)
    ]
    return sa.case(*prefixes, else_=row["queue"])


def _covers(row: Columns) -> sa.ColumnElement[bool]:
    return sa.or_(
        pauses.c.kind == PauseKind.ALL,
        sa.and_(pauses.c.kind == PauseKind.APP, pauses.c.small_app_id == row["small_app_id"]),
        sa.and_(pauses.c.kind == PauseKind.QUEUE, pauses.c.name == listed_queue(row)),
    )


def is_paused(row: Columns) -> sa.ColumnElement[bool]:
    """Return the condition that a pause in force covers an operation."""
    return sa.exists().where(IN_FORCE, _covers(row)).correlate_except(pauses)


def was_paused(row: Columns, within: timedelta) -> sa.ColumnElement[bool]:
    """Return the condition that a pause covers an operation, or did so within that span."""
    lately = ENDS_AT.is_(None) | (database_now(-within) < ENDS_AT)
    return sa.exists().where(lately, _covers(row))


def in_force(connection: sa.Connection) -> tuple[Pause, ...]:
    """Return the pauses in force, the oldest first."""
    query = sa.select(*_PAUSE).where(IN_FORCE).order_by(pauses.c.began_at, pauses.c.id)
    return tuple(_pause(row) for row in connection.execute(query))


def listed(connection: sa.Connection, limit: int) -> tuple[Pause, ...]:
    """Return the newest pauses, also ended ones."""
    query = sa.select(*_PAUSE).order_by(pauses.c.id.desc()).limit(limit)
    return tuple(_pause(row) for row in connection.execute(query))


def covering(connection: sa.Connection, operation_id: UUID) -> Pause | None:
    """Return the pause in force that covers an operation: the one that ends last; or None."""
    ends_last = (pauses.c.until.is_(None).desc(), pauses.c.until.desc())
    query = sa.select(*_PAUSE).where(IN_FORCE, operations.c.id == operation_id)
    its = query.where(_covers(operations.c)).order_by(*ends_last).limit(1)
    row = connection.execute(its).one_or_none()
    return None if row is None else _pause(row)


def paused_among(connection: sa.Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of `ids` that a pause covers."""
    if connection.execute(sa.select(pauses.c.id).where(IN_FORCE).limit(1)).first() is None:
        return set()
    among = in_many(connection, operations.c.id, ids)
    query = sa.select(operations.c.id).where(among, is_paused(operations.c))
    return set(connection.execute(query).scalars())


def begin(
    connection: sa.Connection,
    target: Target,
    until: datetime | None,
    by: str,
    reason: str | None,
) -> bool:
    """Pause something, or change the end and the reason of its pause; return whether it was paused.

    Two that begin at once make one pause.
    """
    _close_over(connection)
    values = {"until": until, "by": by, "reason": reason}
    moved = sa.update(pauses).where(IS_OPEN, _is_of(target)).values(values)
    if connection.execute(moved).rowcount:
        return True
    begun = {**target._asdict(), **values, "began_at": database_now()}
    connection.execute(insert_ignoring(connection, pauses).values(begun))
    return False


def end(connection: sa.Connection, target: Target, by: str) -> bool:
    """End a pause: the next tick sends what waited. Return whether there was one."""
    _close_over(connection)
    ended = sa.update(pauses).where(IS_OPEN, _is_of(target))
    values = {"ended_at": database_now(), "ended_by": by}
    return connection.execute(ended.values(values)).rowcount > 0


def end_of_app(connection: sa.Connection, small_app_id: int) -> None:
    """End the pause of a small app that is deleted."""
    its = (IS_OPEN, pauses.c.small_app_id == small_app_id)
    connection.execute(sa.update(pauses).where(*its).values(ended_at=database_now()))


def _close_over(connection: sa.Connection) -> None:
    """Note the end of pauses whose end has come."""
    is_over = pauses.c.until <= database_now()
    connection.execute(sa.update(pauses).where(IS_OPEN, is_over).values(ended_at=pauses.c.until))


def _is_of(target: Target) -> sa.ColumnElement[bool]:
    return sa.and_(pauses.c.kind == target.kind, pauses.c.name == target.name)


def waiting(
    connection: sa.Connection, targets: Sequence[Target], scope: Scope = WHOLE_INSTALLATION
) -> list[int]:
    """Return how many unstarted operations of a scope the pause of each target covers."""
    if not targets:
        return []
    # Few wait: SQLite would read all that each small app ever ran.
    app_id = operations.c.small_app_id + 0
    its = (app_id.label("small_app_id"), listed_queue(operations.c).label("queue"))
    query = sa.select(*its, sa.func.count()).where(IS_UNSTARTED, scope.has(app_id)).group_by(*its)
    found = connection.execute(query).all()
    return [sum(count for *its, count in found if one.covers(*its)) for one in targets]


def _pause(row: Any) -> Pause:
    kind, *rest = row
    return Pause(PauseKind(kind), *rest)
