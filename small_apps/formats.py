"""Files to rows: CSV, JSON (a list of objects) and JSON Lines. Cells of CSV stay text."""

import csv
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from small_apps.failures import SourceFailed

Row = dict[str, Any]
FORMATS = ("csv", "json", "jsonl")
SHOWN_LENGTH = 60
SUFFIXES = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}
MEDIA_TYPES = {
    "text/csv": "csv",
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
}


def format_of(name: str, media_type: str | None = None) -> str:
    """Return the format that a file's name or a media type tells; CSV when neither does."""
    by_name = SUFFIXES.get(Path(name).suffix.lower())
    by_type = MEDIA_TYPES.get((media_type or "").partition(";")[0].strip().lower())
    return by_name or by_type or "csv"


def read_rows(file: Path, format_name: str, shown: str) -> Iterator[Row]:
    """Yield the rows of `file`. Raises SourceFailed with `shown`, the line and the value.

    It fails too when what it reads is written to meanwhile; another file may take the name.
    """
    try:
        # A byte order mark, as spreadsheets write it, is no part of the first column's name.
        with file.open(encoding="utf-8-sig", newline="") as stream:
            before = _state(stream)
            yield from _READERS[format_name](stream, shown)
            if _state(stream) != before:
                raise SourceFailed(f"{shown} changed while it was read; refresh it again")
    except UnicodeDecodeError as error:
        raise SourceFailed(
            f"{shown}: byte {error.object[error.start]:#04x} is not UTF-8; save the file as UTF-8",
            permanent=True,
        ) from None
    except OSError as error:
        raise SourceFailed(f"{shown}: {error.strerror}") from None


def _state(stream: TextIO) -> tuple[int, int]:
    state = os.fstat(stream.fileno())
    return state.st_mtime_ns, state.st_size


def _read_csv(stream: TextIO, shown: str) -> Iterator[Row]:
    reader = csv.reader(stream, strict=True)
    try:
        columns = _columns(next(reader, []), shown)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(columns):
                raise _fault(
                    shown, reader.line_num, cells, f"{len(cells)} cells, not {len(columns)}"
                )
            yield dict(zip(columns, cells, strict=True))
    except csv.Error as error:
        raise SourceFailed(f"{shown}, line {reader.line_num}: {error}", permanent=True) from None


def _columns(header: list[str], shown: str) -> list[str]:
    columns = [name.strip() for name in header]
    if not columns:
        raise SourceFailed(f"{shown} is empty; its first line must name the columns")
    for name, count in Counter(columns).items():
        if not name or count > 1:
            what = "names a column twice" if name else "has a column without a name"
            raise _fault(shown, 1, header, what)
    return columns


def _read_json(stream: TextIO, shown: str) -> Iterator[Row]:
    try:
        rows = json.load(stream, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"{shown}, line {error.lineno}, column {error.colno}"
        raise SourceFailed(f"{where}: no JSON: {error.msg}", permanent=True) from None
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise SourceFailed(f"{shown}: no JSON: {error}", permanent=True) from None
    if not isinstance(rows, list):
        raise SourceFailed(f"{shown}: write a list of objects: [{{…}}, …]", permanent=True)
    for number, row in enumerate(rows, 1):
        yield _object(row, f"{shown}, row {number}")


def _read_json_lines(stream: TextIO, shown: str) -> Iterator[Row]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise _fault(shown, number, line.strip(), f"no JSON: {error}") from None
        yield _object(row, f"{shown}, line {number}")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON's")


def _object(row: object, where: str) -> Row:
    if not isinstance(row, dict):
        raise SourceFailed(f"{where} {_short(row)}: write an object in {{ }}", permanent=True)
    return row


def _fault(shown: str, line: int, value: object, what: str) -> SourceFailed:
    return SourceFailed(f"{shown}, line {line} {_short(value)}: {what}", permanent=True)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"


_READERS = {"csv": _read_csv, "json": _read_json, "jsonl": _read_json_lines}
