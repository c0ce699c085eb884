"""Consistent reads of a small app: one whole version of its data, design and permissions.

One read transaction lists the snapshots of a version, which are files that never change. All files
are opened before the first row is returned; after that, neither a publish nor maintenance can take
them away. If maintenance removed a file before it was opened, a newer version exists: read again.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any, Literal, Self

import sqlalchemy as sa

from data import snapshots as files
from data.settings import Settings
from data.store import documents as app_documents
from data.store import snapshots
from data.store.snapshots import Snapshot
from models.errors import NotFound, Refused, SchedulerError
from models.problems import unknown_name
from models.store import tenants
from runtime.database import one_snapshot

Place = Literal["staging", "production"]
# Yields what is in the snapshot at a path: its rows, or pieces of them as text.
Read = Callable[[Settings, str], Iterator[Any]]
# Maintenance runs once a day and keeps the newest files: two misses in a row are a coincidence.
MOST_TRIES = 5


class SnapshotDamaged(SchedulerError):
    """A snapshot in staging or production is missing or truncated."""


class VersionGone(SchedulerError):
    """A file of this version was removed after newer ones were published; open it again."""

    def __init__(self, domain: str, snapshot_id: object) -> None:
        self.domain = domain
        super().__init__(
            f"snapshot {snapshot_id} of {domain} was removed meanwhile; open the version again"
        )


@dataclass(frozen=True, slots=True)
class Version:
    """One version: domains with their snapshots, and documents by kind and name."""

    domains: Mapping[str, Snapshot]
    design: Mapping[str, dict[str, Any]]
    permissions: Mapping[str, dict[str, Any]]
    published_at: datetime | None


class OpenVersion:
    """One open version of a small app's data: close it, or use it in a `with` statement."""

    def __init__(self, settings: Settings, version: Version, read: Read = files.read) -> None:
        """Open the files of `version`. Raises VersionGone if one is missing."""
        self._settings = settings
        self._read = read
        self._snapshots = version.domains
        self.domains = tuple(version.domains)
        self.design = version.design
        self._stack = ExitStack()
        self._begun: dict[str, Iterator[Any]] = {}
        try:
            for name in self.domains:
                self._begun[name] = self._opened(name)
        except BaseException:
            self.close()
            raise

    def rows(self, domain: str) -> Iterator[Any]:
        """Return all rows of the domain, in order: a `dict` each, or what `read` makes of them.

        Raises NotFound for a domain that this version does not have. The first call uses the open
        file; a later one opens it again, and raises VersionGone if it was removed meanwhile.
        """
        self._snapshot(domain)
        begun = self._begun.pop(domain, None)
        return self._opened(domain) if begun is None else begun

    def close(self) -> None:
        """Close the files; unread rows are lost."""
        self._begun.clear()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _snapshot(self, domain: str) -> Snapshot:
        if domain not in self._snapshots:
            text = unknown_name("domain of this version", domain, self.domains)
            raise NotFound(f'domain "{domain}" {text}')
        return self._snapshots[domain]

    def _opened(self, domain: str) -> Iterator[Any]:
        snapshot = self._snapshot(domain)
        rows = self._read(self._settings, snapshot.path)
        if isinstance(rows, Generator):
            self._stack.callback(rows.close)
        try:
            # Reading the first row opens the file.
            first = list(islice(rows, 1))
        except Exception as error:
            if files.is_there(self._settings, snapshot.path, snapshot.byte_count):
                raise
            raise VersionGone(domain, snapshot.id) from error
        return chain(first, rows)


def open_version(
    engine: sa.Engine,
    settings: Settings,
    app: str,
    place: Place = "production",
    only: Collection[str] | None = None,
    read: Read = files.read,
) -> OpenVersion:
    """Return the current version of the small app, open: all domains, or `only` some.

    Raises NotFound for an unknown small app or domain, Refused for a named domain without data in
    `place`, SnapshotDamaged for a missing or truncated file of the current version.
    """
    missed: Version | None = None
    for _try in range(MOST_TRIES - 1):
        version = look(engine, app, place, only)
        try:
            return OpenVersion(settings, version, read)
        except VersionGone as gone:
            if missed is not None and missed.domains == version.domains:
                text = f"the {place} snapshot of {gone.domain} is damaged; refresh with force"
                raise SnapshotDamaged(text) from None
        missed = version
    return OpenVersion(settings, look(engine, app, place, only), read)


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
