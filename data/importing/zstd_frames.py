"""The frames of a Zstandard file (RFC 8878): DuckDB reads a cut file as if it were whole."""

import os
import re
from typing import BinaryIO

from data.failures import SourceFailed, check_size

MARK_SIZE = 4
_FRAME = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_MOST_IN_BLOCK = 128 << 10
_RAW, _REPEATED, _PACKED = range(3)


def is_zstd(mark: bytes) -> bool:
    """Return whether a file that begins with `mark` is packed by Zstandard."""
    return mark == _FRAME or _SKIPPABLE.fullmatch(mark) is not None


def check_frames(stream: BinaryIO, shown: str, most: int) -> None:
    """Raise SourceFailed if a frame has no end, or all may unpack to more than `most` bytes.

    A frame that does not name its size is taken to fill all its blocks.
    """
    size = 0
    try:
        while mark := stream.read(MARK_SIZE):
            size += _unpacked_size(stream, mark)
            check_size(f"{shown} may unpack to more", size, most)
    except EOFError:
        end = stream.seek(0, os.SEEK_END)
        text = f"{shown} is truncated zstd: its last frame has no end at byte {end:,}"
        raise SourceFailed(f"{text}; write the whole file") from None
    except ValueError:
        text = f"{shown} is not valid zstd before byte {stream.tell():,}"
        raise SourceFailed(text, permanent=True) from None


def _unpacked_size(stream: BinaryIO, mark: bytes) -> int:
    """Pass over a frame; return its size unpacked. Raises EOFError and ValueError."""
    if len(mark) < MARK_SIZE:
        raise EOFError
    if not is_zstd(mark):
        raise ValueError
    if mark != _FRAME:
        _skip(stream, _number(stream, 4))
        return 0
    flags = _number(stream, 1)
    is_single, has_sum = flags >> 5 & 1, flags >> 2 & 1
    _skip(stream, (1 - is_single) + (0, 1, 2, 4)[flags & 3])
    width = (is_single, 2, 4, 8)[flags >> 6]
    named = _number(stream, width) + (256 if width == 2 else 0)
    most = _size_of_blocks(stream)
    _skip(stream, 4 * has_sum)
    return named if width else most


def _size_of_blocks(stream: BinaryIO) -> int:
    size, is_last = 0, 0
    while not is_last:
        head = _number(stream, 3)
        is_last, kind, length = head & 1, head >> 1 & 3, head >> 3
        if kind > _PACKED or length > _MOST_IN_BLOCK:
            raise ValueError
        _skip(stream, 1 if kind == _REPEATED else length)
        size += _MOST_IN_BLOCK if kind == _PACKED else length
    return size


def _number(stream: BinaryIO, width: int) -> int:
    found = stream.read(width)
    if len(found) < width:
        raise EOFError
    return int.from_bytes(found, "little")


def _skip(stream: BinaryIO, count: int) -> None:
    if count:
        stream.seek(count - 1, os.SEEK_CUR)
        _number(stream, 1)
