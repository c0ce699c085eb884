"""JSON (a list of objects) and JSON Lines to a table of text by DuckDB."""

import json
from collections.abc import Iterator
from itertools import islice

from data.bad_rows import short
from data.failures import CUT_OFF, SourceFailed
from data.importing.duckdb_engine import Engine, reading
from data.importing.plain import NOT_UTF8, Plain
from data.importing.tables import MARK, Table, checked_names

# How far from its end a list's `]` is looked for.
TAIL = 1 << 16
WHITE = " \t\r\n"
_FORMATS = {"json": "array", "jsonl": "newline_delimited"}
_NUMBERS = "('BIGINT', 'UBIGINT', 'HUGEINT', 'UHUGEINT', 'DOUBLE', 'NULL')"


def load_json(engine: Engine, file: Plain, shown: str, format_name: str) -> Table:
    """Return the rows of `file`, with a column for each key of any row. Raises SourceFailed."""
    is_list = format_name == "json"
    has_tail = is_list and not file.is_zstd
    is_closed = not has_tail or file.tail(TAIL).rstrip().endswith(b"]")
    with reading(file.path, shown, "JSON, a list [{…}, …] of objects", permanent=is_closed):
        engine.run(
            "CREATE TABLE objects AS SELECT json FROM read_json_objects(?, "
            f"format = '{_FORMATS[format_name]}', ignore_errors = {not is_list})",
            [str(file.path)],
        )
    if not is_closed:
        # DuckDB reads one that ends with a comma.
        raise SourceFailed(f"{shown}: the list does not end with ]; {CUT_OFF}")
    table = _with_columns(engine, shown)
    if is_list:
        table.bad_rows.unit = "row"
    else:
        table.places = lambda: _places(engine, file, shown)
    _leave_out_strange(table, file, shown)
    engine.run("DROP TABLE objects")
    return table


def _with_columns(engine: Engine, shown: str) -> Table:
    """Make the table of the objects' values: texts unquoted, all else as JSON."""
    keys = dict(
        engine.run(
            f"SELECT key, bool_and(type IN {_NUMBERS}) FROM (SELECT rowid AS row, "
            "unnest(json_keys(json)) AS key, unnest(json_type(json, '$.*')) AS type, "
            "generate_subscripts(json_keys(json), 1) AS place FROM objects) "
            "GROUP BY key ORDER BY min(row * 100000 + place)"
        )
    )
    checked_names(keys, lambda what: SourceFailed(f"{shown} {what}", permanent=True))
    if keys:
        values = "unnest(json_transform(json, ?))"
        engine.run(
            f"CREATE TABLE raw AS SELECT COLUMNS('(?s)(.*)') AS '{MARK}\\1' "
            f"FROM (SELECT {values} FROM objects)",
            [json.dumps(dict.fromkeys(keys, "VARCHAR"))],
        )
    else:
        # A table needs a column.
        engine.run("CREATE TABLE raw AS SELECT NULL AS none FROM objects")
    numbers = frozenset(key for key, are_numbers in keys.items() if are_numbers)
    return Table(engine, "raw", dict.fromkeys(keys, "VARCHAR"), numbers=numbers)


def _leave_out_strange(table: Table, file: Plain, shown: str) -> None:
    """Leave out rows that are no objects. Raises SourceFailed if the last is cut."""
    rows = "rowid IN (SELECT rowid FROM objects WHERE"
    count, is_last_broken = table.engine.one(
        "SELECT count(*), max_by(json IS NULL, rowid) FROM objects"
    )
    if file.is_open and is_last_broken:
        line, text = next(islice(table.places(), count - 1, None))
        what = f"line {line} {short(text)}: not JSON, and no line end"
        raise SourceFailed(f"{shown}, {what}; {CUT_OFF}")
    table.reject(f"{rows} json IS NULL)", None, None, "is not JSON")
    value = "(SELECT left(json::VARCHAR, 100) FROM objects o WHERE o.rowid = raw.rowid)"
    table.reject(f"{rows} json_type(json) <> 'OBJECT')", None, value, "write an object in { }")


def _places(engine: Engine, file: Plain, shown: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of each row; blank lines are none. Raises SourceFailed."""
    try:
        for number, line in enumerate(file.lines(engine, errors="replace"), 1):
            if text := line.strip(WHITE):
                yield number, text
    except UnicodeError:
        raise SourceFailed(f"{shown} {NOT_UTF8}", permanent=True) from None
