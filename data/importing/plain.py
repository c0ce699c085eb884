"""A private copy of a source file, gzip unpacked: DuckDB reads it more than once."""

import gzip
import os
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from data.failures import SourceFailed, check_size
from data.importing.duckdb_engine import Engine
from data.importing.zstd_frames import MARK_SIZE, check_frames, is_zstd
from data.limits import ImportLimits
from tasks.bounded.limits import Watch

CHUNK = 1 << 20
NOT_UTF8 = "is not UTF-8; save the file as UTF-8"
GZIP_MARK = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Plain:
    """A file for DuckDB; `is_open` is whether its last line has no end.

    One that is `is_zstd` is still packed, and so never open: its frames have ends.
    """

    path: Path
    size: int
    is_open: bool
    is_zstd: bool = False

    def lines(self, engine: Engine, errors: str = "strict") -> Iterator[str]:
        """Yield the lines with their ends. Raises UnicodeError."""
        if self.is_zstd:
            yield from engine.lines(self.path)
            return
        with self.path.open(encoding="utf-8", errors=errors, newline="") as stream:
            yield from stream

    def tail(self, size: int) -> bytes:
        """Return the last bytes."""
        with self.path.open("rb") as stream:
            stream.seek(max(0, self.size - size))
            return stream.read()


def plain(path: Path) -> Plain:
    """Return the file at `path`, which is not packed."""
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 1))
        return Plain(path, size, stream.read() not in (b"", b"\n", b"\r"))


def unpacked(
    stream: BinaryIO, target: Path, shown: str, limits: ImportLimits, watch: Watch
) -> Plain:
    """Copy the data of `stream` to `target`, gzip unpacked, without a byte order mark.

    DuckDB unpacks zstd itself, which it knows by the name of the copy. Raises SourceFailed for a
    file above the size limit once unpacked, for zstd that is cut, and for a file that is changed in
    place meanwhile (it may be replaced by rename).
    """
    before, size = _state(stream), 0
    mark = stream.read(MARK_SIZE)
    is_packed, of_zstd = mark.startswith(GZIP_MARK), is_zstd(mark)
    stream.seek(0)
    if of_zstd:
        check_frames(stream, shown, limits.max_bytes)
        stream.seek(0)
        target = target.with_name(target.name + ".zst")
    what = f"{shown} is larger{' unpacked' if is_packed else ''}"
    try:
        source = gzip.GzipFile(fileobj=stream) if is_packed else stream
        with target.open("wb") as copy:
            while chunk := source.read(CHUNK):
                watch.check()
                # DuckDB reads no JSON Lines after a byte order mark.
                size += copy.write(chunk if size else chunk.removeprefix(BOM_UTF8))
                check_size(what, size, limits.max_bytes)
    except EOFError:
        raise SourceFailed(f"{shown} is truncated gzip; write the whole file") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise SourceFailed(f"{shown} is not valid gzip: {error}", permanent=True) from None
    if _state(stream) != before:
        raise SourceFailed(f"{shown} changed while it was read; refresh it again")
    return Plain(target, size, is_open=False, is_zstd=True) if of_zstd else plain(target)


def _state(stream: BinaryIO) -> tuple[int, int]:
    state = os.fstat(stream.fileno())
    return state.st_mtime_ns, state.st_size
