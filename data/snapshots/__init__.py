"""Snapshot files: written whole or not at all, never changed.

A snapshot is a Parquet file, `snapshots/<app>/<domain>/<id>.parquet` in the configured store (by
default the home folder).
"""

import shutil
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID, uuid4

from data.failures import SourceFailed
from data.limits import ImportLimits
from data.settings import Settings
from data.snapshots.stores import FolderStore, Store, store_of
from tasks.bounded.limits import Watch

if TYPE_CHECKING:
    from data.importing import Data, Imported

Row = dict[str, Any]
FOLDER = "snapshots"
DOWNLOADS = "downloads"
SCRATCH = "scratch"
SUFFIX = ".parquet"
# With the files in writing.
WRITTEN = (SUFFIX, ".part")
# A younger file that no row names may still be in writing.
ORPHAN_AGE = timedelta(days=1)
# Of a file in a folder.
LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a new snapshot."""

    app: str
    domain: str
    id: UUID

    @property
    def path(self) -> str:
        """The snapshot's path in its store."""
        return f"{FOLDER}/{folder_name(self.app)}/{folder_name(self.domain)}/{self.id}.parquet"


@dataclass(frozen=True, slots=True)
class Written:
    """A written snapshot file, its size, and the result of its import."""

    id: UUID
    path: str
    byte_count: int
    imported: "Imported"


def folder_name(name: str) -> str:
    """Return `name` as a folder name: no separator, no dot, at most 100 characters."""
    quoted = quote(name, safe=" ").replace(".", "%2E")
    if len(quoted) <= 100:
        return quoted
    return f"{quoted[:80].rstrip('%')}-{sha256(name.encode()).hexdigest()[:16]}"


def download_path(home: Path, app: str, domain: str, place: str) -> Path:
    """Return the path of the domain's last download from `place`."""
    return downloads_folder(home, app) / f"{folder_name(domain)}.{place}"


def downloads_folder(home: Path, app: str) -> Path:
    """Return the folder of a small app's downloads."""
    return home / DOWNLOADS / folder_name(app)


def write(
    settings: Settings, place: Place, data: "Data", watch: Watch, last: str | None = None
) -> Written:
    """Write `data` as a snapshot; a failure leaves nothing behind.

    `last` is the path of the snapshot that the new rows are merged into. Raises SourceFailed and
    Stopped. Maintenance removes the files of a killed process.
    """
    # A process that only publishes and prunes needs no DuckDB.
    from data.importing.in_child import import_in_child

    store = store_of(settings)
    with _scratch(settings.home, folder_name(place.app)) as folder:
        before = _last(store, last, folder) if last and data.rules.key else None
        made = folder / "made.parquet"
        imported = import_in_child(settings.fetch, data, made, before, watch)
        size = made.stat().st_size
        watch.check()
        store.put(made, place.path)
    return Written(place.id, place.path, size, imported)


@contextmanager
def _scratch(home: Path, name: str) -> Iterator[Path]:
    """Yield a new, empty folder, and remove it; maintenance removes those of killed processes."""
    made = home / SCRATCH / name / str(uuid4())
    made.mkdir(parents=True)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _last(store: Store, path: str, folder: Path) -> Path:
    try:
        return store.local(path, folder)
    except FileNotFoundError:
        raise SourceFailed(
            "the last snapshot is missing, so nothing can be appended; restore its file, or "
            'refresh once with "mode": "full"'
        ) from None


def read(settings: Settings, path: str) -> Generator[Row]:
    """Yield the rows of the snapshot at `path`, of which few are in memory. Raises SourceFailed."""
    # A process that only publishes and prunes needs no DuckDB.
    from data.importing.read_parquet import rows_of

    with local(settings, path) as file:
        yield from rows_of(file, path, ImportLimits.of(settings.fetch))


@contextmanager
def local(settings: Settings, path: str) -> Iterator[Path]:
    """Yield a file of this machine that is the snapshot at `path`, alone in its folder."""
    with _scratch(settings.home, "readers") as folder:
        yield store_of(settings).local(path, folder)


def is_there(settings: Settings, path: str, byte_count: int) -> bool:
    """Return whether the snapshot's file exists in full length."""
    return _is_of_snapshot(path) and store_of(settings).size(path) == byte_count


def remove(settings: Settings, paths: Iterable[str]) -> int:
    """Remove the files of deleted snapshots; return how many existed.

    A path that no snapshot has is ignored: an empty one would be the whole store.
    """
    store = store_of(settings)
    return sum(store.remove(path) for path in paths if _is_of_snapshot(path))


def _is_of_snapshot(path: str) -> bool:
    """Return whether a stored path could be that of a snapshot, or of one in writing."""
    folder, *names = path.split("/")
    return (
        folder == FOLDER
        and len(names) > 1
        and names[-1].endswith(WRITTEN)
        # As `folder_name` makes them.
        and path.isascii()
        and path.isprintable()
        and all(name not in {"", ".", ".."} and len(name) <= LONGEST_NAME for name in names)
    )


def orphans(settings: Settings, app: str, known: set[str], now: datetime) -> Iterator[str]:
    """Yield the old files of `app` in the store that no row names, left by killed refreshes."""
    for path, written_at in store_of(settings).files(f"{FOLDER}/{folder_name(app)}"):
        is_ours = path.endswith(WRITTEN)
        is_old = written_at is not None and written_at < now - ORPHAN_AGE
        if is_ours and is_old and path not in known:
            yield path


def remove_leftovers(home: Path, app: str, domains: Collection[str], now: datetime) -> int:
    """Remove what refreshes of `app` left on this machine; return how many.

    That is the downloads of killed ones and of domains that are gone, and folders of imports.
    """
    local, gone = FolderStore(home), 0
    kept = {folder_name(domain) for domain in domains}
    for path, written_at in [*local.files(f"{DOWNLOADS}/{folder_name(app)}")]:
        # The name of an unfinished one has more suffixes.
        is_kept = Path(path).stem in kept
        if not is_kept and written_at and written_at < now - ORPHAN_AGE:
            gone += local.remove(path)
    for name in (folder_name(app), "readers"):
        for folder in sorted((home / SCRATCH / name).glob("*")):
            # A reader that ends removes its own.
            with suppress(FileNotFoundError):
                if datetime.fromtimestamp(folder.stat().st_mtime, now.tzinfo) < now - ORPHAN_AGE:
                    shutil.rmtree(folder, ignore_errors=True)
                    gone += 1
    return gone
