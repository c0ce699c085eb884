"""The ends that agents keep on the disk while the database is away: a file for each.

All agents of a home folder share its files. An end that two of them write is written once: the
first one ends the attempt.
"""

import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from runtime.clock import utc_now
from runtime.folders import PRIVATE_FILE, make_private
from runtime.logs.events import EventLog

logger = EventLog("minutebook.agent")

FOLDER = "kept-ends"
SUFFIX = ".json"
# Beyond it, tasks wait until the database takes their ends.
MOST_KEPT = 2_000
# What may be written of one end: an error has no limit of its own.
MOST_BYTES = 2**18


class Spool:
    """The folder of kept ends in a home folder; made when the first end is kept."""

    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER

    def path_of(self, key: str) -> Path:
        """Return the file of an end."""
        return self.folder / f"{key}{SUFFIX}"

    def keep(self, key: str, kept: dict[str, Any]) -> bool:
        """Return whether the disk holds an end now; False if it does not take it."""
        text = json.dumps({"kept_at": utc_now().isoformat(), **kept}).encode()
        try:
            make_private(self.folder)
            if len(text) > MOST_BYTES or len(os.listdir(self.folder)) >= MOST_KEPT:
                raise OSError(f"{len(text)} bytes, beside {len(os.listdir(self.folder))} others")
            self._write(self.path_of(key), text)
        except OSError as error:
            logger.warning("end_not_kept", "an end cannot be kept on the disk: {error}", error)
            return False
        return True

    def forget(self, key: str) -> None:
        """Remove an end that is written, or will never be."""
        with suppress(OSError):
            self.path_of(key).unlink()

    def kept(self, but: Collection[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the ends that the disk holds, oldest first, with their keys."""
        for path in _by_age(self.folder):
            if path.stem not in but and (found := _read(path)) is not None:
                yield path.stem, found

    def oldest_s(self) -> float | None:
        """Return for how many seconds the oldest end has been kept; None if none is."""
        paths = _by_age(self.folder)
        with suppress(OSError):
            return max(0.0, utc_now().timestamp() - paths[0].lstat().st_mtime) if paths else None
        return None

    def _write(self, path: Path, text: bytes) -> None:
        new = path.with_suffix(f".{uuid4().hex[:8]}")
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        try:
            with open(file, "wb") as opened:
                opened.write(text)
                opened.flush()
                os.fsync(file)
            new.replace(path)
        except OSError:
            new.unlink(missing_ok=True)
            raise
        _sync(self.folder)


def _sync(folder: Path) -> None:
    """Let the disk hold a folder's new names."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _by_age(folder: Path) -> list[Path]:
    found = []
    with suppress(OSError):
        for path in folder.glob(f"*{SUFFIX}"):
            with suppress(OSError):
                found.append((path.lstat().st_mtime, path))
    return [path for _, path in sorted(found)]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        logger.warning("end_unreadable", "a kept end, {path}, is unreadable: {error}", path, error)
        return None
    return found if isinstance(found, dict) else None
