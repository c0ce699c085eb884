"""Snapshots, and a domain's pointers to them: staging and production."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from enum import Enum, auto
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from data.store.publishing import publish as move
from data.store.tables import domains, snapshots
from models.sql import database_now
from models.stored import document_in


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One whole state of a domain's data; `path` is relative to the store."""

    id: UUID
    domain: str
    path: str
    row_count: int
    byte_count: int
    digest: str
    validators: dict[str, str]
    figures: dict[str, Any]
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain: its stored source, and its snapshots in staging and production."""

    name: str
    source: dict[str, Any]
    staging: Snapshot | None
    production: Snapshot | None
    refreshed_at: datetime | None
    published_at: datetime | None
    # The operation that last moved production.
    published_by: UUID | None = None


def domains_of(connection: sa.Connection, small_app_id: int) -> list[Domain]:
    """Return the small app's domains by name, with their staged and published snapshots."""
    rows = connection.execute(
        sa.select(domains).where(domains.c.small_app_id == small_app_id).order_by(domains.c.name)
    ).all()
    ids = {one for row in rows for one in (row.staging_id, row.production_id) if one}
    found = _snapshots(connection, ids)
    return [
        Domain(
            name=row.name,
            source=document_in(row.source),
            staging=found.get(row.staging_id),
            production=found.get(row.production_id),
            refreshed_at=row.refreshed_at,
            published_at=row.published_at,
            published_by=row.published_by,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class MergedInto:
    """The staged snapshot that a new one was merged into; None without one."""

    id: UUID | None


class Staged(Enum):
    """What became of the data that were read."""

    DONE = auto()
    # The staged data come from a refresh that began later.
    OVERTAKEN = auto()
    # The domain is gone, or staging moved to what an older reading found.
    CHANGED = auto()


def stage(
    connection: sa.Connection,
    small_app_id: int,
    snapshot: Snapshot,
    operation_id: UUID,
    begun_at: datetime,
    base: MergedInto | None = None,
) -> Staged:
    """Record `snapshot`, whose reading began at `begun_at`, and move its domain's staging to it.

    Unless the result is DONE, nothing is recorded: a reading never replaces one that began later.
    If it was merged into `base` and staging is another snapshot by now, the result is CHANGED: rows
    added meanwhile would be lost.
    """
    moved = _of(small_app_id, snapshot.domain).values(
        staging_id=snapshot.id, staging_begun_at=begun_at, refreshed_at=database_now()
    )
    if base is None:
        moved = moved.where(_began_by(begun_at))
    else:
        moved = moved.where(domains.c.staging_id.is_not_distinct_from(base.id))
    with connection.begin_nested() as point:
        _record(connection, small_app_id, snapshot, operation_id)
        if connection.execute(moved).rowcount == 1:
            return Staged.DONE
        point.rollback()
    return Staged.CHANGED if base else _unmoved(connection, small_app_id, snapshot, begun_at)


def _record(
    connection: sa.Connection, small_app_id: int, snapshot: Snapshot, operation_id: UUID
) -> None:
    its = {"small_app_id": small_app_id, "operation_id": operation_id}
    values = {**asdict(snapshot), **its, "created_at": database_now()}
    connection.execute(sa.insert(snapshots).values(values))


def confirm(
    connection: sa.Connection,
    small_app_id: int,
    snapshot: Snapshot,
    begun_at: datetime,
    validators: dict[str, str] | None = None,
) -> Staged:
    """Record that the staged snapshot was still current at `begun_at`.

    `validators` replace its old ones.
    """
    confirmed = (
        _of(small_app_id, snapshot.domain)
        .where(domains.c.staging_id == snapshot.id, _began_by(begun_at))
        .values(staging_begun_at=begun_at, refreshed_at=database_now())
    )
    if connection.execute(confirmed).rowcount == 0:
        return _unmoved(connection, small_app_id, snapshot, begun_at)
    if validators is not None:
        connection.execute(
            sa.update(snapshots).where(snapshots.c.id == snapshot.id).values(validators=validators)
        )
    return Staged.DONE


def _began_by(instant: datetime) -> sa.ColumnElement[bool]:
    """Whether the reading of what is staged began at `instant` or before it.

    One that is in the future was noted before the clock was set back: it counts for nothing.
    """
    noted = domains.c.staging_begun_at
    return sa.or_(noted.is_(None), noted <= sa.literal(instant), noted > database_now())


def _unmoved(
    connection: sa.Connection, small_app_id: int, snapshot: Snapshot, begun_at: datetime
) -> Staged:
    """Return why staging did not move."""
    its = (domains.c.small_app_id == small_app_id, domains.c.name == snapshot.domain)
    is_later = sa.select(domains.c.name).where(*its, sa.not_(_began_by(begun_at)))
    found = connection.execute(is_later).first()
    return Staged.CHANGED if found is None else Staged.OVERTAKEN


def publish(
    connection: sa.Connection, small_app_id: int, names: Sequence[str], operation_id: UUID
) -> None:
    """Move production to staging for the domains `names`, and record the operation.

    Unchanged domains, and domains without a staged snapshot, are left alone.
    """
    its = (domains.c.small_app_id == small_app_id, domains.c.name.in_(names))
    is_staged = domains.c.staging_id.is_not(None)
    move(connection, domains.c.production_id, domains.c.staging_id, operation_id, *its, is_staged)


def paths(connection: sa.Connection, small_app_id: int) -> set[str]:
    """Return the paths of all snapshots of the small app."""
    known = sa.select(snapshots.c.path).where(snapshots.c.small_app_id == small_app_id)
    return set(connection.execute(known).scalars())


def prune(connection: sa.Connection, small_app_id: int, keep: int, limit: int) -> list[str]:
    """Delete up to `limit` snapshots; return the paths of their files, which stay.

    Each domain keeps its newest `keep`, and those in staging or production. The caller removes
    the files after the commit: a row without a file is worse than a file without a row.
    """
    used = _used(small_app_id)
    place = sa.func.row_number().over(
        partition_by=snapshots.c.domain,
        order_by=(snapshots.c.created_at.desc(), snapshots.c.id),
    )
    ranked = (
        sa.select(snapshots.c.id, place.label("place"))
        .where(snapshots.c.small_app_id == small_app_id, snapshots.c.id.not_in(used))
        .subquery()
    )
    doomed = connection.execute(
        sa.select(ranked.c.id).where(ranked.c.place > keep).limit(limit)
    ).scalars()
    deleted = (
        sa.delete(snapshots)
        .where(snapshots.c.id.in_(doomed.all()), snapshots.c.id.not_in(used))
        .returning(snapshots.c.path)
    )
    return list(connection.execute(deleted).scalars())


def _used(small_app_id: int) -> sa.CompoundSelect[Any]:
    both = (domains.c.staging_id, domains.c.production_id)
    return sa.union(
        *(
            sa.select(pointer).where(domains.c.small_app_id == small_app_id, pointer.is_not(None))
            for pointer in both
        )
    )


def _of(small_app_id: int, domain: str) -> sa.Update:
    return sa.update(domains).where(
        domains.c.small_app_id == small_app_id, domains.c.name == domain
    )


def _snapshots(connection: sa.Connection, ids: Collection[UUID]) -> dict[UUID, Snapshot]:
    if not ids:
        return {}
    rows = connection.execute(sa.select(snapshots).where(snapshots.c.id.in_(ids))).all()
    names = [one.name for one in fields(Snapshot)]
    return {row.id: Snapshot(**{name: getattr(row, name) for name in names}) for row in rows}
