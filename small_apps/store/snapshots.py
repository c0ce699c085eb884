"""Snapshots and the two pointers of a domain: staging, which refresh moves, and production."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.sql import database_now
from models.tables import domains, snapshots


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One whole state of a domain's data; `path` is relative to the home folder."""

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
    """A domain: its source as stored, and what staging and production show now."""

    name: str
    source: dict[str, Any]
    staging: Snapshot | None
    production: Snapshot | None
    refreshed_at: datetime | None
    published_at: datetime | None
    # The operation that moved production last.
    published_by: UUID | None = None


def domains_of(connection: sa.Connection, small_app_id: int) -> list[Domain]:
    """Return the small app's domains by name, with the snapshots that their pointers name."""
    rows = connection.execute(
        sa.select(domains).where(domains.c.small_app_id == small_app_id).order_by(domains.c.name)
    ).all()
    ids = {one for row in rows for one in (row.staging_id, row.production_id) if one}
    found = _snapshots(connection, ids)
    return [
        Domain(
            name=row.name,
            source=json.loads(row.source),
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
    """Which snapshot of staging a new one was made of; None: of none."""

    id: UUID | None


def stage(
    connection: sa.Connection,
    small_app_id: int,
    snapshot: Snapshot,
    operation_id: UUID,
    base: MergedInto | None = None,
) -> bool:
    """Record `snapshot` and let its domain's staging point to it.

    Returns False when the domain is gone, or when `base` is not what staging shows any more: rows
    that came meanwhile would be lost.
    """
    connection.execute(
        sa.insert(snapshots).values(
            id=snapshot.id,
            small_app_id=small_app_id,
            domain=snapshot.domain,
            path=snapshot.path,
            row_count=snapshot.row_count,
            byte_count=snapshot.byte_count,
            digest=snapshot.digest,
            validators=snapshot.validators,
            figures=snapshot.figures,
            operation_id=operation_id,
            created_at=database_now(),
        )
    )
    moved = _of(small_app_id, snapshot.domain).values(
        staging_id=snapshot.id, refreshed_at=database_now()
    )
    if base is not None:
        moved = moved.where(domains.c.staging_id.is_not_distinct_from(base.id))
    return connection.execute(moved).rowcount == 1


def confirm(
    connection: sa.Connection,
    small_app_id: int,
    snapshot: Snapshot,
    validators: dict[str, str] | None = None,
) -> None:
    """Note that staging's snapshot is still what the source has; `validators` are newer ones."""
    connection.execute(_of(small_app_id, snapshot.domain).values(refreshed_at=database_now()))
    if validators is not None:
        connection.execute(
            sa.update(snapshots).where(snapshots.c.id == snapshot.id).values(validators=validators)
        )


def publish(
    connection: sa.Connection, small_app_id: int, names: Sequence[str], operation_id: UUID
) -> None:
    """Move production to staging for the domains `names`, and note by which operation.

    Domains whose production is there already, or whose staging is empty, are left alone.
    """
    moved = (
        sa.update(domains)
        .where(
            domains.c.small_app_id == small_app_id,
            domains.c.name.in_(names),
            domains.c.staging_id.is_not(None),
            domains.c.production_id.is_distinct_from(domains.c.staging_id),
        )
        .values(
            production_id=domains.c.staging_id,
            published_at=database_now(),
            published_by=operation_id,
        )
    )
    connection.execute(moved)


def paths(connection: sa.Connection, small_app_id: int) -> set[str]:
    """Return the files of all snapshots of the small app."""
    known = sa.select(snapshots.c.path).where(snapshots.c.small_app_id == small_app_id)
    return set(connection.execute(known).scalars())


def prune(connection: sa.Connection, small_app_id: int, keep: int, limit: int) -> list[str]:
    """Delete up to `limit` snapshots; return their paths, whose files are now nobody's.

    Kept are the newest `keep` of each domain besides those that staging or production show. The
    files are removed after the commit: a row without a file is worse than a file without a row.
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
    return {
        row.id: Snapshot(
            id=row.id,
            domain=row.domain,
            path=row.path,
            row_count=row.row_count,
            byte_count=row.byte_count,
            digest=row.digest,
            validators=row.validators,
            figures=row.figures,
            created_at=row.created_at,
        )
        for row in rows
    }
