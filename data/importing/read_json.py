"""JSON (a list of objects) and JSON Lines to a table of text by DuckDB."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import duckdb

from data.failures import CUT_OFF, SourceFailed, first_line
from data.importing.bad_rows import short
from data.importing.columnar import Engine, literal
from data.importing.prepare import CHUNK, Ends
from data.importing.tables import Table, cells, checked_names, made

LARGEST_OBJECT = 16 << 20
# Python reports an error's line and column; for larger files DuckDB's byte position must do.
LARGEST_EXPLAINED = 64 << 20
WHITE = b" \t\r\n"
_FORMATS = {"json": "array", "jsonl": "newline_delimited"}
_OBJECTS = "raw_objects"
_NO_NUMBER = r"(?i)[:,]\s*-?(nan|inf)"
_NUMBERS = "('BIGINT', 'UBIGINT', 'HUGEINT', 'UHUGEINT', 'DOUBLE')"


def load_json(engine: Engine, file: Path, shown: str, format_name: str, ends: Ends) -> Table:
    """Return the rows of `file`, with a column for each key of any row. Raises SourceFailed."""
    _check_start(file, shown, format_name)
    if format_name == "jsonl" and ends.is_open:
        _end_last_line(engine, file, f"{shown}, line {ends.crlf + ends.lf + 1}")
    try:
        engine.run(
            f"CREATE TABLE {_OBJECTS} AS SELECT json FROM read_json_objects(?, "
            f"format = '{_FORMATS[format_name]}', maximum_object_size = {LARGEST_OBJECT}, "
            f"ignore_errors = {'true' if format_name == 'jsonl' else 'false'})",
            [str(file)],
        )
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise _explained(file, shown, error) from None
    if format_name == "json" and not _is_closed(file):
        raise SourceFailed(f"{shown}: the list does not end with ]; {CUT_OFF}")
    table = _with_columns(engine, "raw", _keys(engine, _OBJECTS, shown))
    if format_name == "jsonl":
        table.lines = lambda rows: _lines_of(file, rows)
    else:
        table.bad_rows.unit = "row"
    _leave_out_strange(table)
    engine.run(f"DROP TABLE {_OBJECTS}")
    return table


def _check_start(file: Path, shown: str, format_name: str) -> None:
    if format_name == "jsonl":
        return
    with file.open("rb") as stream:
        first = _first_sign(stream)
    if not first:
        raise SourceFailed(f"{shown} is empty; write a list of objects: [{{…}}, …]", permanent=True)
    if first == b"{":
        raise SourceFailed(f"{shown} is one object; write a list: [{{…}}, …]", permanent=True)


def _end_last_line(engine: Engine, file: Path, where: str) -> None:
    """End the last line: DuckDB ignores an unended one of digits only.

    Raises SourceFailed if it is no JSON: it may be cut, which no other line can be.
    """
    with file.open("rb+") as stream:
        last = _last_line(stream)
        if last.strip() and not engine.one("SELECT json_valid(?)", [last.decode()])[0]:
            text = f"{where} {short(last.decode())}: not JSON, and no line end"
            raise SourceFailed(f"{text}; {CUT_OFF}")
        stream.seek(0, os.SEEK_END)
        stream.write(b"\n")


def _last_line(stream: BinaryIO) -> bytes:
    """Return the bytes after the last newline, or the last that an object may have."""
    at, tail = stream.seek(0, os.SEEK_END), b""
    while at and b"\n" not in tail and len(tail) < LARGEST_OBJECT:
        size = min(CHUNK, at)
        at = stream.seek(at - size)
        tail = stream.read(size) + tail
    return tail.rpartition(b"\n")[2]


def _is_closed(file: Path) -> bool:
    """Return whether a list ends with `]`; DuckDB reads one that ends with a comma."""
    with file.open("rb") as stream:
        at = stream.seek(0, os.SEEK_END)
        while at:
            size = min(CHUNK, at)
            at = stream.seek(at - size)
            rest = stream.read(size).rstrip(WHITE)
            if rest:
                return rest.endswith(b"]")
    return False


def _first_sign(stream: BinaryIO) -> bytes:
    while chunk := stream.read(CHUNK):
        rest = chunk.lstrip(WHITE)
        if rest:
            return rest[:1]
    return b""


def _explained(file: Path, shown: str, error: duckdb.Error) -> SourceFailed:
    """Return the error of a list, with line and column if they can be found."""
    where, what = shown, f"not JSON: {first_line(error)}"
    if file.stat().st_size <= LARGEST_EXPLAINED:
        try:
            json.loads(file.read_bytes())
        except json.JSONDecodeError as fault:
            where = f"{shown}, line {fault.lineno}, column {fault.colno}"
            what = f"not JSON: {fault.msg}"
        except (ValueError, RecursionError) as fault:
            what = f"not JSON: {fault}"
    return SourceFailed(f"{where}: {what.replace(str(file), shown)}", permanent=_is_closed(file))


def _keys(engine: Engine, objects: str, shown: str) -> tuple[str, ...]:
    rows = engine.run(
        "SELECT key FROM (SELECT rowid AS row, unnest(json_keys(json)) AS key, "
        "generate_subscripts(json_keys(json), 1) AS place "
        f"FROM {objects} WHERE json_type(json) = 'OBJECT') "
        "GROUP BY key ORDER BY min(row * 100000 + place)"
    )
    return checked_names(
        (key for (key,) in rows), lambda what: SourceFailed(f"{shown} {what}", permanent=True)
    )


def _with_columns(engine: Engine, name: str, keys: Sequence[str]) -> Table:
    """Make the table `name` of the objects' values: texts unquoted, all else as JSON."""
    pointers = ", ".join(literal("/" + key.replace("~", "~0").replace("/", "~1")) for key in keys)
    # A table needs a column, even if no object has a key.
    wanted = "NULL::VARCHAR AS c0"
    if keys:
        wanted = ", ".join(
            f"found[{number}] ->> '$' AS {place}"
            for number, place in enumerate(cells(len(keys)), 1)
        )
    engine.run(
        f"CREATE TABLE {name}_values AS "
        f"SELECT json_extract(json, [{pointers}]::VARCHAR[]) AS found FROM {name}_objects"
    )
    engine.run(f"CREATE TABLE {name} AS SELECT {wanted} FROM {name}_values")
    numbers = _numbers(engine, name, len(keys))
    engine.run(f"DROP TABLE {name}_values")
    types = ("VARCHAR",) * len(keys)
    return made(Table(engine, name, tuple(keys), types, numbers=numbers))


def _numbers(engine: Engine, name: str, width: int) -> frozenset[int]:
    """Return the columns whose every value is a JSON number."""
    if not width:
        return frozenset()
    kinds = [f"json_type(found[{number}])" for number in range(1, width + 1)]
    tests = ", ".join(f"bool_and({kind} IN {_NUMBERS}) FILTER ({kind} <> 'NULL')" for kind in kinds)
    answers = engine.one(f"SELECT {tests} FROM {name}_values")
    return frozenset(number for number, answer in enumerate(answers) if answer)


def _leave_out_strange(table: Table) -> None:
    """Leave out rows that are not objects, or have numbers that DuckDB accepts but JSON forbids."""
    objects, name = f"{table.name}_objects", table.name
    strange = f"rowid IN (SELECT rowid FROM {objects} WHERE"
    shown = f"(SELECT left(o.json::VARCHAR, 100) FROM {objects} o WHERE o.rowid = {name}.rowid)"
    table.leave_out(f"{strange} json IS NULL)", None, None, "is not JSON")
    table.leave_out(
        f"{strange} json_type(json) <> 'OBJECT')", None, shown, "write an object in { }"
    )
    table.leave_out(
        f"{strange} regexp_matches(json::VARCHAR, '{_NO_NUMBER}') AND "
        "len(list_filter(json_extract(json, '$.*'), lambda one: json_type(one) = 'DOUBLE' "
        "AND regexp_full_match(one::VARCHAR, '(?i)-?(nan|inf|infinity)'))) > 0)",
        None,
        shown,
        "JSON has no NaN and no infinity",
    )


def _lines_of(file: Path, rows: Sequence[int]) -> Mapping[int, tuple[int, str]]:
    """Return the line number and text of each row, by its index among the non-blank lines."""
    wanted, row = set(rows), -1
    found = dict.fromkeys(rows, (0, ""))
    with file.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            row += 1
            if row in wanted:
                found[row] = (number, line.strip())
    return found
