"""Snapshots as files: written whole or not at all, never changed, read row by row.

A snapshot is JSON Lines under `<home>/snapshots/<app>/<domain>/<id>.jsonl`. Its row in the
database names the file relative to the home folder, so that the home may be moved.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from small_apps.figures import Figures
from small_apps.formats import Row

FOLDER = "snapshots"
DOWNLOADS = "downloads"
# A file that no row names may be one that is being written now.
ORPHAN_AGE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Written:
    """A snapshot's file: where (relative to the home), how much, and what is in it."""

    path: str
    row_count: int
    byte_count: int
    digest: str
    figures: dict[str, Any]


def folder_name(name: str) -> str:
    """Return `name` as the name of a folder: no separator, no dots alone, not too long."""
    quoted = quote(name, safe=" ").replace(".", "%2E")
    if len(quoted) <= 100:
        return quoted
    return f"{quoted[:80].rstrip('%')}-{sha256(name.encode()).hexdigest()[:16]}"


def download_path(home: Path, app: str, domain: str) -> Path:
    """Return where a domain's last download is kept."""
    return home / DOWNLOADS / folder_name(app) / folder_name(domain)


def write(home: Path, app: str, domain: str, snapshot_id: UUID, rows: Iterable[Row]) -> Written:
    """Write `rows` as a snapshot; whatever `rows` raises leaves nothing behind.

    A process that is killed leaves a `.part` file, which maintenance removes.
    """
    path = Path(FOLDER, folder_name(app), folder_name(domain), f"{snapshot_id}.jsonl")
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(file.name + ".part")
    try:
        written = _write_rows(part, path, rows)
        part.replace(file)
        _sync_folder(file.parent)
    finally:
        part.unlink(missing_ok=True)
    return written


def read(home: Path, path: str) -> Iterator[Row]:
    """Yield the rows of the snapshot whose row names `path`."""
    with (home / path).open(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def is_there(home: Path, path: str, byte_count: int) -> bool:
    """Return whether the snapshot's file is there, in full length."""
    file = home / path
    return file.is_file() and file.stat().st_size == byte_count


def remove(home: Path, paths: Iterable[str]) -> int:
    """Remove snapshot files whose rows are gone; return how many were there."""
    removed = 0
    for path in paths:
        try:
            (home / path).unlink()
        except FileNotFoundError:
            continue
        removed += 1
    return removed


def orphans(home: Path, app: str, known: set[str], now: datetime) -> Iterator[str]:
    """Yield old files of `app` that no row names: a killed refresh left them."""
    limit = (now - ORPHAN_AGE).timestamp()
    for top in (FOLDER, DOWNLOADS):
        for file in sorted((home / top / folder_name(app)).rglob("*")):
            path = str(file.relative_to(home))
            is_ours = file.suffix == ".part" or (top == FOLDER and file.suffix == ".jsonl")
            if is_ours and path not in known and file.stat().st_mtime < limit:
                yield path


def _write_rows(part: Path, path: Path, rows: Iterable[Row]) -> Written:
    figures, digest, size = Figures(), sha256(), 0
    with part.open("wb") as stream:
        for row in rows:
            line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
            stream.write(line)
            digest.update(line)
            size += len(line)
            figures.add(row)
        stream.flush()
        os.fsync(stream.fileno())
    return Written(str(path), figures.row_count, size, digest.hexdigest(), figures.told())


def _sync_folder(folder: Path) -> None:
    # Without it, a power cut may leave a committed row that names no file.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
