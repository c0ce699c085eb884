"""Snapshots as files: written whole or not at all, never changed.

A snapshot is a Parquet file, `snapshots/<app>/<domain>/<id>.parquet` in the store that the
settings name (the home folder by default). Those of earlier releases are JSON Lines (`.jsonl`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from runtime.config import Settings
from small_apps.failures import SourceFailed
from small_apps.importing import Data, Imported, import_data, load
from small_apps.importing.columnar import opened
from small_apps.snapshots import scratch
from small_apps.snapshots.stores import FolderStore, Store, removed, store_of

Row = dict[str, Any]
FOLDER = "snapshots"
DOWNLOADS = "downloads"
SUFFIXES = (".parquet", ".jsonl")
# A file that no row names may be one that is being written now.
ORPHAN_AGE = timedelta(days=1)
FETCHED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new snapshot goes."""

    app: str
    domain: str
    id: UUID

    @property
    def path(self) -> str:
        """The snapshot's path in its store."""
        return f"{FOLDER}/{folder_name(self.app)}/{folder_name(self.domain)}/{self.id}.parquet"


@dataclass(frozen=True, slots=True)
class Written:
    """A snapshot's file: where, how much, and what is in it and what was left out."""

    id: UUID
    path: str
    byte_count: int
    imported: Imported


def folder_name(name: str) -> str:
    """Return `name` as the name of a folder: no separator, no dots alone, not too long."""
    quoted = quote(name, safe=" ").replace(".", "%2E")
    if len(quoted) <= 100:
        return quoted
    return f"{quoted[:80].rstrip('%')}-{sha256(name.encode()).hexdigest()[:16]}"


def download_path(home: Path, app: str, domain: str, place: str) -> Path:
    """Return where what a domain last downloaded from that place is kept."""
    return home / DOWNLOADS / folder_name(app) / f"{folder_name(domain)}.{place}"


def write(settings: Settings, place: Place, data: Data, last: str | None = None) -> Written:
    """Write `data` as a snapshot; whatever goes wrong leaves nothing behind.

    `last` is the path of the snapshot whose rows the new ones are merged into. Raises SourceFailed
    and Stopped. A process that is killed leaves files that maintenance removes.
    """
    store = store_of(settings)
    with scratch.scratch(settings.home, folder_name(place.app)) as folder:
        before = _last(store, last, folder) if last and data.rules.key else None
        made = folder / "made.parquet"
        imported = import_data(settings.fetch, data, made, before)
        size = made.stat().st_size
        data.watch.check()
        store.put(made, place.path)
    return Written(place.id, place.path, size, imported)


def _last(store: Store, path: str, folder: Path) -> Path:
    try:
        return store.local(path, folder)
    except FileNotFoundError:
        raise SourceFailed(
            "the last snapshot is missing, so that nothing can be added to it; bring its file "
            'back, or refresh once with "mode": "full"'
        ) from None


def read(settings: Settings, path: str) -> Iterator[Row]:
    """Yield the rows of the snapshot whose row names `path`."""
    with scratch.scratch(settings.home, "readers") as folder:
        file = store_of(settings).local(path, folder)
        with opened(folder, settings.fetch) as engine:
            table = load(engine, file, path)
            cursor = engine.cursor(f"SELECT * FROM {table.name}")
            while rows := cursor.fetchmany(FETCHED_AT_ONCE):
                for row in rows:
                    yield dict(zip(table.columns, row, strict=False))


def is_there(settings: Settings, path: str, byte_count: int) -> bool:
    """Return whether the snapshot's file is there, in full length."""
    return store_of(settings).size(path) == byte_count


def remove(settings: Settings, paths: Iterable[str]) -> int:
    """Remove snapshot files whose rows are gone; return how many were there."""
    return removed(store_of(settings), paths)


def orphans(settings: Settings, app: str, known: set[str], now: datetime) -> Iterator[str]:
    """Yield old files of `app` that no row names, in the store: a killed refresh left them."""
    for path, written_at in store_of(settings).files(f"{FOLDER}/{folder_name(app)}"):
        is_ours = path.endswith((*SUFFIXES, ".part"))
        is_old = written_at is not None and written_at < now - ORPHAN_AGE
        if is_ours and is_old and path not in known:
            yield path


def remove_leavings(home: Path, app: str, now: datetime) -> int:
    """Remove what killed refreshes of `app` left on this machine; return how many things."""
    local, gone = FolderStore(home), 0
    for path, written_at in [*local.files(f"{DOWNLOADS}/{folder_name(app)}")]:
        if path.endswith(".part") and written_at and written_at < now - ORPHAN_AGE:
            gone += local.remove(path)
    for name in (folder_name(app), "readers"):
        for folder in sorted((home / scratch.FOLDER / name).glob("*")):
            if datetime.fromtimestamp(folder.stat().st_mtime, now.tzinfo) < now - ORPHAN_AGE:
                gone += local.remove(str(folder.relative_to(home)))
    return gone
