"""A private copy of a source file for import: unpacked and checked."""

import codecs
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from data.failures import SourceFailed, check_size
from data.settings import FetchSettings
from tasks.bounded.watch import Watch

CHUNK = 1 << 20
GZIP_MARK = b"\x1f\x8b"
# A gzip member may have 20 bytes, and the bytes after it are copied each time.
PACKED_AT_ONCE = 1 << 14
# The largest window plus 16, which selects the gzip format.
GZIP_WINDOW = 31


@dataclass(slots=True)
class Ends:
    """The line ends of a text, counted by kind, and whether the last line has none."""

    crlf: int = 0
    lf: int = 0
    cr: int = 0
    is_open: bool = False

    def add(self, chunk: bytes) -> None:
        """Count the line ends of `chunk`, which must not split one."""
        both = chunk.count(b"\r\n")
        self.crlf += both
        self.lf += chunk.count(b"\n") - both
        self.cr += chunk.count(b"\r") - both
        if chunk:
            self.is_open = not chunk.endswith((b"\r", b"\n"))

    @property
    def are_mixed(self) -> bool:
        """Whether there is more than one kind."""
        return sum(count > 0 for count in (self.crlf, self.lf, self.cr)) > 1


def prepare(
    stream: BinaryIO,
    target: Path,
    shown: str,
    settings: FetchSettings,
    watch: Watch,
    *,
    is_text: bool = True,
) -> Ends:
    """Write the unpacked bytes of `stream` to `target`, without a text's byte order mark.

    Raises SourceFailed for a file above the size limit once unpacked, for one that is changed in
    place meanwhile (it may be replaced by rename), and for text that is not UTF-8.
    """
    with target.open("wb") as copy:
        before = _state(stream)
        checked = _Text(shown)
        for chunk in _unpacked(stream, shown, settings, watch):
            copy.write(checked.taken(chunk) if is_text else chunk)
        if is_text:
            copy.write(checked.rest())
        if _state(stream) != before:
            raise SourceFailed(f"{shown} changed while it was read; refresh it again")
    return checked.ends


class _Text:
    def __init__(self, shown: str) -> None:
        self.ends = Ends()
        self._shown = shown
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._held = b""
        self._is_first = True

    def taken(self, chunk: bytes) -> bytes:
        """Return the part of `chunk` that can be written now."""
        self._check(chunk, final=False)
        if self._is_first:
            self._is_first = False
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        chunk = self._held + chunk
        # The chunk may split a line end.
        self._held = b"\r" if chunk.endswith(b"\r") else b""
        chunk = chunk[: len(chunk) - len(self._held)]
        self.ends.add(chunk)
        return chunk

    def rest(self) -> bytes:
        """Return the bytes held back."""
        self._check(b"", final=True)
        self.ends.add(self._held)
        return self._held

    def _check(self, chunk: bytes, *, final: bool) -> None:
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            raise SourceFailed(
                f"{self._shown}: byte {error.object[error.start]:#04x} is not UTF-8; "
                "save the file as UTF-8",
                permanent=True,
            ) from None


def _state(stream: BinaryIO) -> tuple[int, int]:
    state = os.fstat(stream.fileno())
    return state.st_mtime_ns, state.st_size


def _unpacked(
    stream: BinaryIO, shown: str, settings: FetchSettings, watch: Watch
) -> Iterator[bytes]:
    first = stream.read(CHUNK)
    chunks = chain([first], iter(lambda: stream.read(CHUNK), b""))
    is_packed = first.startswith(GZIP_MARK)
    size, what = 0, f"{shown} is larger{' unpacked' if is_packed else ''}"
    for chunk in _gunzipped(chunks, shown, watch) if is_packed else chunks:
        watch.check()
        size += len(chunk)
        check_size(what, size, settings.max_bytes)
        yield chunk


def _sliced(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), PACKED_AT_ONCE):
            yield chunk[start : start + PACKED_AT_ONCE]


def _gunzipped(chunks: Iterable[bytes], shown: str, watch: Watch) -> Iterator[bytes]:
    """Yield the unpacked bytes in bounded pieces; one file may hold several gzip members."""
    unpacker = zlib.decompressobj(GZIP_WINDOW)
    try:
        for packed in _sliced(chunks):
            watch.check()
            pending = packed
            while pending:
                if unpacker.eof:
                    unpacker = zlib.decompressobj(GZIP_WINDOW)
                piece = unpacker.decompress(pending, CHUNK)
                pending = unpacker.unconsumed_tail or unpacker.unused_data
                if piece:
                    yield piece
        yield unpacker.flush()
    except zlib.error as error:
        raise SourceFailed(f"{shown} is not valid gzip: {error}", permanent=True) from None
    if not unpacker.eof:
        raise SourceFailed(f"{shown} is truncated gzip; write the whole file")
