"""What comes from outside is one visible line where it is stored, logged or printed."""

import logging
import sys
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from models.column_types import ShownText
from models.stored import StoredList
from models.tables import metadata
from runtime.logs.lines import JsonFormatter, LineFormatter

# Clears the screen, begins a log line of its own, reverses the rest.
HOSTILE = "a\x1b[2J\x9b1m\r\n12:00:00 scheduler INFO forged\u2028\u202etxt.exe"
SHOWN = r"a\x1b[2J\x9b1m\x0d\n12:00:00 scheduler INFO forged\u2028\u202etxt.exe"
FROM_OUTSIDE = {"error", "message", "phase", "quarantined"}


def columns() -> Iterator[sa.Column[object]]:
    """Yield every column that holds what a step, a server or an error says."""
    for table in metadata.tables.values():
        for column in table.columns:
            if column.name in FROM_OUTSIDE or (table.name, column.name) == ("operations", "reason"):
                yield column


@pytest.mark.parametrize("column", list(columns()), ids=str)
def test_every_column_for_errors_escapes_what_it_takes(column: sa.Column[object]) -> None:
    assert isinstance(column.type, ShownText)


@pytest.mark.parametrize(
    "name", [("operations", "steps"), ("operation_logs", "lines")], ids=".".join
)
def test_lists_of_what_was_said_escape_their_texts(name: tuple[str, str]) -> None:
    kind = metadata.tables[name[0]].columns[name[1]].type

    assert isinstance(kind, StoredList)
    dialect = sa.create_engine("sqlite://").dialect
    said = {**dict.fromkeys(kind.texts, "a"), "message": HOSTILE, "n": 1}
    stored = kind.process_bind_param([said], dialect)
    assert kind.process_result_value(stored, dialect) == [said | {"message": SHOWN}]


def logged(**values: object) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": HOSTILE, "levelname": "INFO", "name": "hostile", **values})


def test_a_log_line_is_one_line() -> None:
    line = LineFormatter("%(levelname)s %(message)s").format(logged(msg="it %s", args=(HOSTILE,)))

    assert line == f"INFO it {SHOWN}"


def test_a_traceback_keeps_its_lines_and_hides_nothing() -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        raised = sys.exc_info()

    text = LineFormatter("%(message)s").format(logged(msg="failed", exc_info=raised))

    assert text.startswith("failed\nTraceback (most recent call last):\n")
    assert not set("\x1b\x9b\r\u2028\u202e") & set(text)


def test_a_json_line_is_one_line() -> None:
    line = JsonFormatter().format(logged())

    assert line.isascii()
    assert line.isprintable()
