"""What an engine executes: which statements, and how many rows they read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa


@contextmanager
def executed(engine: sa.Engine) -> Iterator[list[str]]:
    """Yield the statements that are executed meanwhile, apart from those of transactions."""
    found: list[str] = []

    def note(*event: Any) -> None:
        if not event[2].startswith("BEGIN"):
            found.append(event[2])

    with _noting(engine, "before_cursor_execute", note):
        yield found


@contextmanager
def begun(engine: sa.Engine) -> Iterator[list[sa.Connection]]:
    """Yield the connections on which transactions begin meanwhile, one for each."""
    found: list[sa.Connection] = []
    with _noting(engine, "begin", found.append):
        yield found


@contextmanager
def rows_read(engine: sa.Engine) -> Iterator[list[int]]:
    """Yield how many rows each query returned meanwhile; of drivers, PostgreSQL's knows it."""
    assert engine.dialect.name == "postgresql"
    found: list[int] = []

    def note(_connection: Any, cursor: Any, *_: Any) -> None:
        if cursor.description is not None:
            found.append(cursor.rowcount)

    with _noting(engine, "after_cursor_execute", note):
        yield found


@contextmanager
def _noting(engine: sa.Engine, event: str, note: Callable[..., None]) -> Iterator[None]:
    sa.event.listen(engine, event, note)
    try:
        yield
    finally:
        sa.event.remove(engine, event, note)
