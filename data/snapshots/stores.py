"""Stores of snapshots: a folder, or any file system that fsspec has a driver for.

A file appears under its final name whole or not at all: a folder renames it, an object store
uploads it at once. Its name is unknown to readers until a row of the database holds it.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from data.failures import SourceFailed, first_line
from data.settings import Settings


class Store:
    """The files of a file system of fsspec by their path; its driver finds the credentials."""

    def __init__(self, filesystem: Any, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

    def put(self, local: Path, path: str) -> None:
        """Move the finished file `local` to `path`."""
        with _failures():
            target = self._at(path)
            self._filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._filesystem.put_file(str(local), target)
            self._filesystem.invalidate_cache()
            size = self._filesystem.size(target)
        if size != local.stat().st_size:
            raise SourceFailed(f"the store kept {size} bytes of {path}; refresh it again")
        local.unlink()

    def size(self, path: str) -> int | None:
        """Return the size of a file; None if it does not exist."""
        with _failures():
            try:
                self._filesystem.invalidate_cache()
                found: int | None = self._filesystem.info(self._at(path)).get("size")
            except FileNotFoundError:
                return None
            return found

    def remove(self, path: str) -> bool:
        """Remove a file; return whether it existed."""
        with _failures():
            try:
                self._filesystem.rm_file(self._at(path))
            except FileNotFoundError:
                return False
            return True

    def files(self, folder: str) -> Iterator[tuple[str, datetime | None]]:
        """Yield the files under `folder` by name, each with when it was written, if known."""
        with _failures():
            self._filesystem.invalidate_cache()
            try:
                found = self._filesystem.find(self._at(folder), detail=True)
            except FileNotFoundError:
                return
            for name, info in sorted(found.items()):
                yield name.lstrip("/").removeprefix(self._root.lstrip("/") + "/"), _written_at(info)

    def local(self, path: str, scratch: Path) -> Path:
        """Return a readable path of the file on this machine, in `scratch`."""
        copy = scratch / path.rpartition("/")[2]
        with _failures():
            self._filesystem.get_file(self._at(path), str(copy))
        return copy

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"


class FolderStore(Store):
    """A folder of this machine, or a mounted one."""

    def __init__(self, root: Path) -> None:
        from fsspec.implementations.local import LocalFileSystem

        super().__init__(LocalFileSystem(), str(root.absolute()))

    def put(self, local: Path, path: str) -> None:
        """Move `local` to `path`, synced to the disk."""
        file = Path(self._at(path))
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(file.name + ".part")
        try:
            # Between two disks this copies; the atomic rename follows within one.
            shutil.move(local, part)
            _sync(part, os.O_RDWR)
            part.replace(file)
            # Otherwise a power cut may leave a committed row that names no file.
            _sync(file.parent, os.O_RDONLY)
        finally:
            part.unlink(missing_ok=True)

    def local(self, path: str, scratch: Path) -> Path:
        """Return a hard link to the file in `scratch`, or a copy."""
        copy = scratch / Path(path).name
        try:
            os.link(self._at(path), copy)
        except OSError:
            shutil.copyfile(self._at(path), copy)
        return copy


def store_of(settings: Settings) -> Store:
    """Return the configured store of snapshots. Raises SourceFailed without a driver."""
    url = settings.snapshots.url.get_secret_value()
    if not url:
        return FolderStore(settings.home)
    if url.startswith("file://"):
        return FolderStore(Path(unquote(urlsplit(url).path)))
    try:
        with _failures():
            import fsspec

            filesystem, root = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise SourceFailed(
            f"SCHED_SNAPSHOTS_URL ({urlsplit(url).scheme}://…) cannot be used: {error}"
        ) from None
    return Store(filesystem, root)


@contextmanager
def _failures() -> Iterator[None]:
    """Raise a driver's own errors as SourceFailed of the store."""
    try:
        yield
    except (SourceFailed, FileNotFoundError, ImportError, ValueError):
        raise
    except Exception as error:  # each driver has errors of its own
        text = f"{type(error).__name__}: {first_line(error)}"
        raise SourceFailed(f"the snapshot store failed: {text}") from None


def _written_at(info: dict[str, Any]) -> datetime | None:
    for key in ("LastModified", "last_modified", "mtime", "created", "updated"):
        found = info.get(key)
        if isinstance(found, int | float):
            found = datetime.fromtimestamp(found, UTC)
        if isinstance(found, datetime):
            return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
