"""A private copy of a source file, unpacked: DuckDB reads it more than once."""

import gzip
import os
import zlib
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from data.failures import SourceFailed, check_size
from data.settings import FetchSettings
from tasks.bounded.watch import Watch

CHUNK = 1 << 20
GZIP_MARK = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Plain:
    """An unpacked file; `is_open` is whether its last line has no end."""

    path: Path
    size: int
    is_open: bool

    def text(self, errors: str = "strict") -> TextIO:
        """Open the file as text."""
        return self.path.open(encoding="utf-8", errors=errors, newline="")

    def tail(self, size: int) -> bytes:
        """Return the last bytes."""
        with self.path.open("rb") as stream:
            stream.seek(max(0, self.size - size))
            return stream.read()


def plain(path: Path) -> Plain:
    """Return the unpacked file at `path`."""
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 1))
        return Plain(path, size, stream.read() not in (b"", b"\n", b"\r"))


def unpacked(
    stream: BinaryIO, target: Path, shown: str, settings: FetchSettings, watch: Watch
) -> Plain:
    """Copy the data of `stream` to `target`, gzip unpacked, without a byte order mark.

    Raises SourceFailed for a file above the size limit once unpacked, and for one that is changed
    in place meanwhile (it may be replaced by rename).
    """
    before, size = _state(stream), 0
    is_packed = stream.read(len(GZIP_MARK)) == GZIP_MARK
    stream.seek(0)
    what = f"{shown} is larger{' unpacked' if is_packed else ''}"
    try:
        source = gzip.GzipFile(fileobj=stream) if is_packed else stream
        with target.open("wb") as copy:
            while chunk := source.read(CHUNK):
                watch.check()
                # DuckDB reads no JSON Lines after a byte order mark.
                size += copy.write(chunk if size else chunk.removeprefix(BOM_UTF8))
                check_size(what, size, settings.max_bytes)
    except EOFError:
        raise SourceFailed(f"{shown} is truncated gzip; write the whole file") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise SourceFailed(f"{shown} is not valid gzip: {error}", permanent=True) from None
    if _state(stream) != before:
        raise SourceFailed(f"{shown} changed while it was read; refresh it again")
    return plain(target)


def _state(stream: BinaryIO) -> tuple[int, int]:
    state = os.fstat(stream.fileno())
    return state.st_mtime_ns, state.st_size
