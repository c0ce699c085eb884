"""Consistent reads of a small app: one whole version of its data, design and permissions.

One read transaction lists the snapshots of a version, which are files that never change. A file is
opened before its first row is returned; after that, neither a publish nor maintenance can take it
away. If maintenance removed a file before it was opened, a newer version exists: read that one.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any, Literal

import sqlalchemy as sa

from data import snapshots as files
from data.settings import Settings
from data.store import documents as app_documents
from data.store import snapshots
from data.store.snapshots import Snapshot
from models.errors import NotFound, Refused, SchedulerError
from models.hints import unknown_name
from models.store import tenants
from runtime.database import one_snapshot

Place = Literal["staging", "production"]
# Yields what is in the snapshot at a path: its rows, or pieces of them as text.
Read = Callable[[Settings, str], Generator[Any]]
# Maintenance runs once a day and keeps the newest files: two misses in a row are a coincidence.
MOST_TRIES = 5


class SnapshotDamaged(SchedulerError):
    """A snapshot in staging or production is missing or truncated."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version: domains with their snapshots, and documents by kind and name."""

    domains: Mapping[str, Snapshot]
    design: Mapping[str, dict[str, Any]]
    permissions: Mapping[str, dict[str, Any]]
    published_at: datetime | None


@contextmanager
def open_rows(
    engine: sa.Engine,
    settings: Settings,
    app: str,
    domain: str,
    place: Place = "production",
    read: Read = files.read,
) -> Iterator[Iterator[Any]]:
    """Yield all rows of a domain of the small app, in order: a `dict` each, or what `read` yields.

    Raises NotFound for an unknown small app or domain, Refused for a domain without data in
    `place`, SnapshotDamaged for a missing or truncated file.
    """
    missed: Snapshot | None = None
    for _try in range(MOST_TRIES):
        snapshot = look(engine, app, place, [domain]).domains[domain]
        if snapshot == missed:
            break
        with closing(read(settings, snapshot.path)) as rows:
            try:
                # Reading the first row opens the file.
                first = list(islice(rows, 1))
            except Exception:
                if files.is_there(settings, snapshot.path, snapshot.byte_count):
                    raise
                missed = snapshot
                continue
            yield chain(first, rows)
            return
    text = f"the {place} snapshot of {domain} is damaged; refresh with force"
    raise SnapshotDamaged(text)


def look(engine: sa.Engine, app: str, place: Place, only: Collection[str] | None = None) -> Version:
    """Return the current version of the small app, read in one database snapshot."""
    with one_snapshot(engine) as connection:
        found = tenants.get(connection, app)
        domains = snapshots.domains_of(connection, found.id)
        documents = app_documents.shown(connection, found.id, place)
        published_at = app_documents.published_at(connection, found.id)
    shown = {
        one.name: snapshot
        for one in domains
        if (only is None or one.name in only) and (snapshot := getattr(one, place)) is not None
    }
    _check_named(only or (), [one.name for one in domains], shown, place)
    instants = [at for at in (*(one.published_at for one in domains), published_at) if at]
    newest = max(instants, default=None) if place == "production" else None
    return Version(shown, documents["design"], documents["permissions"], newest)


def _check_named(
    only: Collection[str], known: Sequence[str], shown: Mapping[str, Snapshot], place: Place
) -> None:
    for name in only:
        if name not in known:
            raise NotFound(f'domain "{name}" {unknown_name("domain", name, known)}')
        if name not in shown:
            remedy = "publish it first" if place == "production" else "refresh it first"
            raise Refused(f'domain "{name}" has nothing in {place} yet; {remedy}')
