"""What readers see of a small app: one whole version of its data, design and permissions.

One read transaction tells which snapshots belong to the version; they are files that never change.
The files are opened before the first row is given out: from then on neither a publish nor
maintenance can take them away. One that maintenance removed between look and opening belongs to a
version that nobody sees any more: look again.
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from types import TracebackType
from typing import Any, Literal, Self

import sqlalchemy as sa

from models.errors import NotFound, Refused, SchedulerError
from models.problems import unknown_name
from runtime.config import Settings
from runtime.database import one_snapshot
from small_apps import snapshots as files
from small_apps.store import app_documents, small_apps, snapshots
from small_apps.store.snapshots import Snapshot

Row = dict[str, Any]
Place = Literal["staging", "production"]
# Maintenance runs once a day and keeps the newest: even twice in a row is a coincidence.
MOST_LOOKS = 5


class SnapshotDamaged(SchedulerError):
    """A snapshot that staging or production shows is not there, or cut off."""


class VersionGone(SchedulerError):
    """A version's file was removed, as newer versions were published: open it again."""

    def __init__(self, domain: str, snapshot_id: object) -> None:
        self.domain = domain
        super().__init__(
            f"snapshot {snapshot_id} of {domain} was removed meanwhile; open the version again"
        )


@dataclass(frozen=True, slots=True)
class Version:
    """What belongs together: domains with their snapshots, and documents by kind and name."""

    domains: Mapping[str, Snapshot]
    design: Mapping[str, dict[str, Any]]
    permissions: Mapping[str, dict[str, Any]]
    published_at: datetime | None


class OpenVersion:
    """One version of a small app's data, held open; close it, or use it in a `with` statement."""

    def __init__(self, settings: Settings, version: Version) -> None:
        """Open the files of `version`. Raises VersionGone when one is missing."""
        self._settings = settings
        self._version = version
        self._stack = ExitStack()
        self._begun: dict[str, Iterator[Row]] = {}
        try:
            for name in version.domains:
                self._begun[name] = self._opened(name)
        except BaseException:
            self.close()
            raise

    @property
    def domains(self) -> tuple[str, ...]:
        """The names of the domains that can be read."""
        return tuple(self._version.domains)

    @property
    def design(self) -> Mapping[str, dict[str, Any]]:
        """The documents of the design, by name."""
        return self._version.design

    @property
    def permissions(self) -> Mapping[str, dict[str, Any]]:
        """The documents of the permissions, by name."""
        return self._version.permissions

    @property
    def published_at(self) -> datetime | None:
        """When the newest of it was published; None for staging, or before the first publish."""
        return self._version.published_at

    def snapshot_id(self, domain: str) -> str:
        """Return the id of the domain's snapshot: another one means other data."""
        return str(self._snapshot(domain).id)

    def rows(self, domain: str) -> Iterator[Row]:
        """Return the domain's rows, in order, from the first.

        Raises NotFound for a domain that this version does not have. The first call finds the file
        open; a later one opens it again, and raises VersionGone when it was removed meanwhile.
        """
        self._snapshot(domain)
        begun = self._begun.pop(domain, None)
        return self._opened(domain) if begun is None else begun

    def close(self) -> None:
        """Let the files go; rows that were not read yet cannot be read any more."""
        self._begun.clear()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def _snapshot(self, domain: str) -> Snapshot:
        known = self._version.domains
        if domain not in known:
            told = unknown_name("domain of this version", domain, known)
            raise NotFound(f'domain "{domain}" {told}')
        return known[domain]

    def _opened(self, domain: str) -> Iterator[Row]:
        snapshot = self._snapshot(domain)
        rows = files.read(self._settings, snapshot.path)
        if isinstance(rows, Generator):
            self._stack.callback(rows.close)
        try:
            # Its first row: whoever has read one holds the file.
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
) -> OpenVersion:
    """Return what the small app shows now, its files open: all domains, or `only` some.

    Raises NotFound for a small app or a domain that nobody knows, Refused for a named domain that
    has nothing there yet, SnapshotDamaged for a file that is missing although it is shown.
    """
    missed: Version | None = None
    for _look in range(MOST_LOOKS - 1):
        version = look(engine, app, place, only)
        try:
            return OpenVersion(settings, version)
        except VersionGone as gone:
            if missed is not None and missed.domains == version.domains:
                told = f"the {place} snapshot of {gone.domain} is damaged; refresh with force"
                raise SnapshotDamaged(told) from None
        missed = version
    return OpenVersion(settings, look(engine, app, place, only))


def look(engine: sa.Engine, app: str, place: Place, only: Collection[str] | None = None) -> Version:
    """Return the version that the small app shows now, by one snapshot of the database."""
    with one_snapshot(engine) as connection:
        found = small_apps.get(connection, app)
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
