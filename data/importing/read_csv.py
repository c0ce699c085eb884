"""CSV to a table of text by DuckDB, which leaves out rows that do not fit the header."""

import csv
from collections.abc import Iterator
from io import IncrementalNewlineDecoder

from data.bad_rows import MOST_SAMPLES, BadRow, short
from data.failures import CUT_OFF, SourceFailed
from data.importing.duckdb_engine import LONGEST_LINE, Engine, literal, reading
from data.importing.plain import CHUNK, NOT_UTF8, Plain, plain
from data.importing.tables import MARK, Table, cell, checked_names

# Of the line below a single cell; a title stands above more.
MOST_SURPLUS = 2
csv.field_size_limit(LONGEST_LINE)
# Separators of spreadsheets: if one parts the columns, the whole first line is read as one name.
OTHER_SIGNS = {";": "semicolons", "\t": "tabs"}
_ENCODING = "INVALID ENCODING"
_REJECTED = (
    "SELECT line, min(error_type::VARCHAR) AS error, any_value(csv_line) AS text, "
    "any_value(line_byte_position) AS place FROM reject_errors GROUP BY line"
)


def load_csv(engine: Engine, file: Plain, shown: str) -> Table:
    """Return the rows of `file`; empty cells are empty texts. Raises SourceFailed."""
    try:
        with reading(file.path, shown, "CSV"):
            names = _header(engine, file, shown)
        file = _with_one_end(engine, file)
    except UnicodeError:
        raise SourceFailed(f"{shown} {NOT_UTF8}", permanent=True) from None
    except csv.Error as error:
        raise SourceFailed(f"{shown}: not CSV: {error}", permanent=True) from None
    types = ", ".join(f"{literal(MARK + name)}: 'VARCHAR'" for name in names)
    wanted = ", ".join(f"coalesce({cell(name)}, '') AS {cell(name)}" for name in names)
    # A blank line is not a row, but DuckDB reads it as one if there is only one column.
    blank = f" WHERE {cell(names[0])} IS NOT NULL" if len(names) == 1 else ""
    with reading(file.path, shown, "CSV"):
        engine.run(
            f"CREATE TABLE raw AS SELECT {wanted} FROM read_csv(?, columns = {{{types}}}, "
            "auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', "
            f"allow_quoted_nulls = false, max_line_size = {LONGEST_LINE}, "
            f"buffer_size = {4 * LONGEST_LINE}, store_rejects = true, rejects_limit = 0){blank}",
            [str(file.path)],
        )
    table = Table(engine, "raw", dict.fromkeys(names, "VARCHAR"))
    table.places = lambda: _places(table, file)
    _take_rejects(table, file, shown)
    return table


def _header(engine: Engine, file: Plain, shown: str) -> tuple[str, ...]:
    reader = csv.reader(file.lines(engine))
    header, second = next(reader, []), next(reader, None)
    width = len(second or ())
    names = [name.strip() for name in header]
    if not names:
        raise SourceFailed(f"{shown} is empty; its first line must name the columns")

    def fault(what: str) -> SourceFailed:
        return SourceFailed(f"{shown}, line 1 {short(header)}: {what}", permanent=True)

    for sign, sign_name in OTHER_SIGNS.items():
        if len(names) == 1 and sign in names[0]:
            raise fault(f"is one column; separate columns by commas, not by {sign_name}")
    # DuckDB keeps the whole line for each surplus cell, in memory outside its limit.
    if len(names) == 1 and width > MOST_SURPLUS:
        raise fault(f"is one cell, but the next line has {width}; begin with the columns")
    found = checked_names(names, fault)
    if second is None and file.is_open:
        raise SourceFailed(f"{shown}, line 1 {short(header)}: no line end; {CUT_OFF}")
    return found


def _with_one_end(engine: Engine, file: Plain) -> Plain:
    """Return `file`, or a copy with one kind of line end, because DuckDB accepts only one."""
    if file.is_zstd:
        return file
    ends = IncrementalNewlineDecoder(None, translate=False)
    with file.path.open(encoding="latin-1", newline="") as stream:
        while chunk := stream.read(CHUNK):
            ends.decode(chunk)
    if not isinstance(ends.newlines, tuple):
        return file
    copy = file.path.with_name("one_end")
    with copy.open("w", encoding="utf-8", newline="") as new:
        rows = csv.reader(file.lines(engine), strict=True)
        csv.writer(new, lineterminator="\n").writerows(rows)
        if file.is_open:
            new.truncate(new.tell() - 1)
    return plain(copy)


def _take_rejects(table: Table, file: Plain, shown: str) -> None:
    """Record the rows that DuckDB left out. Raises SourceFailed if the last one is cut."""
    first = [
        (_bad_row(line, error, text, len(table.types)), error)
        for line, error, text, _place in table.engine.run(
            f"{_REJECTED} ORDER BY error <> '{_ENCODING}', line LIMIT {MOST_SAMPLES}"
        )
    ]
    if not first:
        return
    row, error = first[0]
    if error == _ENCODING:
        raise SourceFailed(f"{shown}, line {row.line} {NOT_UTF8}", permanent=True)
    # An open quote may span many lines.
    (count,) = table.engine.one(
        f"SELECT sum(len(string_split(trim(text, chr(10)), chr(10))))::BIGINT FROM ({_REJECTED})"
    )
    table.bad_rows.add(count, [row for row, _error in first])
    ((line, error, text, place),) = table.engine.run(f"{_REJECTED} ORDER BY line DESC LIMIT 1")
    is_last = not file.is_zstd and place + len(text.encode()) > file.size
    if is_last and error != "TOO MANY COLUMNS":
        last = _bad_row(line, error, text, len(table.types))
        what = f"{last.value}: {last.why}, and no line end"
        raise SourceFailed(f"{shown}, line {line} {what}; {CUT_OFF}")


def _bad_row(line: int, error: str, text: str, width: int) -> BadRow:
    if error in ("MISSING COLUMNS", "TOO MANY COLUMNS"):
        found = next(csv.reader([text.strip("\r\n")]), [])
        return BadRow(line, None, short(found), f"{len(found)} cells, not {width}")
    why = error.lower()
    if error == "UNQUOTED VALUE":
        is_open = text.count('"') % 2
        why = "its quote is not closed" if is_open else "a quote is in the middle of a cell"
    return BadRow(line, None, short(text), why)


def _places(table: Table, file: Plain) -> Iterator[tuple[int, str]]:
    """Yield the line of each row; like DuckDB, count one with line breaks in its cells as one."""
    rejected = {line for (line,) in table.engine.run("SELECT DISTINCT line FROM reject_errors")}
    for line, cells in enumerate(csv.reader(file.lines(table.engine, errors="replace")), 1):
        if line > 1 and cells and line not in rejected:
            yield line, ""
