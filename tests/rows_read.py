"""How many rows statements read: what is stored beside them must not matter."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa


@contextmanager
def rows_read(engine: sa.Engine) -> Iterator[list[int]]:
    """Yield how many rows each query returned meanwhile; of drivers, PostgreSQL's knows it."""
    assert engine.dialect.name == "postgresql"
    found: list[int] = []

    def note(_connection: Any, cursor: Any, *_: Any) -> None:
        if cursor.description is not None:
            found.append(cursor.rowcount)

    sa.event.listen(engine, "after_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(engine, "after_cursor_execute", note)
