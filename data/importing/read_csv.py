"""CSV to a table of text by DuckDB, which leaves out rows that do not fit the header."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import duckdb

from data.failures import CUT_OFF, SourceFailed, first_line
from data.importing.bad_rows import BadRow, short
from data.importing.columnar import Engine, literal
from data.importing.prepare import Ends
from data.importing.tables import Table, cells, checked_names, made

LONGEST_LINE = 2 << 20
# DuckDB keeps the whole line for each surplus cell, in memory outside its limit.
MOST_KEPT = 64 << 20
csv.field_size_limit(LONGEST_LINE)
# Stands after the file's last line while its records are looked through.
AFTER = "\0"
# Separators of spreadsheets: if one parts the columns, the whole first line is read as one name.
OTHER_SIGNS = {";": "semicolons", "\t": "tabs"}


def load_csv(engine: Engine, file: Path, shown: str, ends: Ends, name: str = "raw") -> Table:
    """Return the rows of `file`; empty cells are empty texts. Raises SourceFailed."""
    columns = _header(file, shown, ends)
    if ends.are_mixed:
        _with_one_end(file, shown)
    places = cells(len(columns))
    wanted = ", ".join(f"coalesce({place}, '') AS {place}" for place in places)
    # A blank line is not a row, but DuckDB reads it as one if there is only one column.
    blank = f" WHERE {places[0]} IS NOT NULL" if len(places) == 1 else ""
    types = ", ".join(f"{literal(place)}: 'VARCHAR'" for place in places)

    def read(of_others: str) -> None:
        engine.run(
            f"CREATE OR REPLACE TABLE {name} AS SELECT {wanted} FROM read_csv(?, "
            f"columns = {{{types}}}, auto_detect = false, header = true, delim = ',', "
            "quote = '\"', escape = '\"', allow_quoted_nulls = false, "
            f"max_line_size = {LONGEST_LINE}, buffer_size = {4 * LONGEST_LINE}, "
            f"{of_others}){blank}",
            [str(file)],
        )

    try:
        read("ignore_errors = true")
        is_whole = _took_every_line(engine, name, ends)
        if not is_whole:
            _check_records(file, len(columns), shown, ends)
            read("store_rejects = true, rejects_limit = 0")
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise SourceFailed(f"{shown}: not CSV: {first_line(error)}", permanent=True) from None
    table = made(Table(engine, name, columns, ("VARCHAR",) * len(columns)))
    table.lines = lambda rows: _lines_of(file, len(columns), rows)
    if not is_whole:
        _take_rejects(table, file)
    return table


def _took_every_line(engine: Engine, name: str, ends: Ends) -> bool:
    """Return whether each line after the first became a row, as in most files."""
    (rows,) = engine.one(f"SELECT count(*) FROM {name}")
    return bool(rows + 1 == ends.crlf + ends.lf + ends.cr + ends.is_open)


def _check_records(file: Path, width: int, shown: str, ends: Ends) -> None:
    """Raise SourceFailed for a cut record, and if reports of surplus cells need too much memory."""
    kept, last, final = 0, None, None
    for record in _records(file):
        last, final = final, record
        extra = len(record.cells) - width
        if extra > 0:
            kept += extra * (sum(map(len, record.cells)) + len(record.cells))
        if kept > MOST_KEPT:
            found = f"{len(record.cells):,} cells, but the first line names {width:,} columns"
            text = f"{shown}, line {record.ends} {short(record.cells)}: {found}"
            raise SourceFailed(text, permanent=True)
    if final is not None and final.cells != [AFTER]:
        raise _cut(shown, final, "its quote is not closed")
    if ends.is_open and last is not None and len(last.cells) < width:
        raise _cut(shown, last, f"{len(last.cells)} cells, not {width}, and no line end")


def _cut(shown: str, record: "_Record", what: str) -> SourceFailed:
    cells = [cell.removesuffix(AFTER) for cell in record.cells]
    where = f"{shown}, line {record.begins} {short(cells)}"
    return SourceFailed(f"{where}: {what}; {CUT_OFF}")


@dataclass(frozen=True, slots=True)
class _Record:
    """A record, and the lines of the file on which it begins and ends."""

    begins: int
    ends: int
    cells: list[str]


def _records(file: Path) -> Iterator[_Record]:
    """Yield each record, and at last one of `AFTER`, which an open quote takes in; skip invalid."""
    with file.open(encoding="utf-8", newline="") as stream:
        reader = csv.reader(chain(stream, [AFTER]))
        while True:
            begins = reader.line_num + 1
            with suppress(csv.Error):
                found = next(reader, None)
                if found is None:
                    return
                yield _Record(begins, reader.line_num, found)


def _header(file: Path, shown: str, ends: Ends) -> tuple[str, ...]:
    with file.open(encoding="utf-8", newline="") as stream:
        try:
            header = next(csv.reader(stream, strict=True), [])
        except csv.Error as error:
            raise SourceFailed(f"{shown}, line 1: {error}", permanent=True) from None
        is_last = not stream.read(1)
    names = [name.strip() for name in header]
    if not names:
        raise SourceFailed(f"{shown} is empty; its first line must name the columns")

    def fault(what: str) -> SourceFailed:
        return SourceFailed(f"{shown}, line 1 {short(header)}: {what}", permanent=True)

    for sign, name in OTHER_SIGNS.items():
        if len(names) == 1 and sign in names[0]:
            raise fault(f"is one column; separate columns by commas, not by {name}")
    found = checked_names(names, fault)
    if is_last and ends.is_open:
        raise _cut(shown, _Record(1, 1, header), "no line end")
    return found


def _with_one_end(file: Path, shown: str) -> None:
    """Rewrite `file` with one kind of line end, because DuckDB accepts only one."""
    copy = file.with_name(f"{file.name}.ends")
    with (
        file.open(encoding="utf-8", newline="") as old,
        copy.open("w", encoding="utf-8", newline="") as new,
    ):
        reader = csv.reader(old, strict=True)
        try:
            csv.writer(new, lineterminator="\n").writerows(reader)
        except csv.Error as error:
            text = f"{shown}, line {reader.line_num}: {error}"
            raise SourceFailed(text, permanent=True) from None
    copy.replace(file)


def _take_rejects(table: Table, file: Path) -> None:
    """Record the rows that DuckDB left out; one open quote may span many lines."""
    (count,) = table.engine.one(
        "SELECT coalesce(sum(1 + length(rtrim(line, chr(10))) "
        "- length(replace(rtrim(line, chr(10)), chr(10), ''))), 0)::BIGINT FROM "
        "(SELECT line_byte_position, ltrim(any_value(csv_line), chr(10)) AS line "
        "FROM reject_errors GROUP BY line_byte_position)"
    )
    if not count:
        return
    first = table.engine.run(
        "SELECT line_byte_position, min(error_type), any_value(csv_line) FROM reject_errors "
        "GROUP BY line_byte_position ORDER BY line_byte_position LIMIT 10"
    )
    lines = _lines_at(file, [position for position, _kind, _line in first])
    width = len(table.columns)
    samples = [
        _bad_row(line, str(kind), str(text).strip("\r\n"), width)
        for line, (_position, kind, text) in zip(lines, first, strict=True)
    ]
    table.bad_rows.add(count, samples)


def _bad_row(line: int, kind: str, text: str, width: int) -> BadRow:
    if kind in ("MISSING COLUMNS", "TOO MANY COLUMNS"):
        found = next(csv.reader([text]), [])
        return BadRow(line, None, short(found), f"{len(found)} cells, not {width}")
    if kind == "UNQUOTED VALUE":
        return BadRow(line, None, short(text), "a quote is not at the start or end of a cell")
    return BadRow(line, None, short(text), kind.lower())


def _lines_at(file: Path, positions: Sequence[int]) -> list[int]:
    """Return the line number at each byte position; positions must ascend."""
    found, line, at = [], 1, 0
    with file.open("rb") as stream:
        for position in positions:
            while at < position:
                piece = stream.read(min(1 << 20, position - at))
                if not piece:
                    break
                line += piece.count(b"\n")
                at += len(piece)
            found.append(line)
    return found


def _lines_of(file: Path, width: int, rows: Sequence[int]) -> Mapping[int, tuple[int, str]]:
    """Return the first line of each row, by its index among the rows of the right width."""
    wanted = set(rows)
    found = dict.fromkeys(rows, (0, ""))
    for row, line in enumerate(_fitting(file, width)):
        if row in wanted:
            found[row] = (line, "")
    return found


def _fitting(file: Path, width: int) -> Iterator[int]:
    with file.open(encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream)
        next(reader, None)
        before = reader.line_num
        for found in reader:
            begun, before = before + 1, reader.line_num
            if len(found) == width:
                yield begun
