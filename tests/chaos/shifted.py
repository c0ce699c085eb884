"""A clock of SQLite shifted by a file; the storm's processes load it (`sitecustomize`).

SQLite reads the machine's clock, and only root can set that. Our connections get another `strftime`
that adds the shift in the file.
"""

import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FILE = "MINUTEBOOK_STORM_CLOCK"
FORMAT = "%Y-%m-%d %H:%M:%f000"


def replace_clock(connection: sqlite3.Connection, now: Callable[[], datetime]) -> None:
    """Let a connection's clock show what `now` returns, by the millisecond."""

    def strftime(form: str, instant: str, moved: str = "0 seconds") -> str:
        if (form, instant) != (FORMAT, "now"):
            raise ValueError(f"only the clock is asked, not {form!r} of {instant!r}")
        at = now() + timedelta(seconds=float(moved.removesuffix(" seconds")))
        return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}000"

    # Like the built-in clock, this one is constant within a statement.
    connection.create_function("strftime", -1, strftime, deterministic=True)


def shift_connection(connection: sqlite3.Connection, file: Path) -> None:
    """Make a connection's clock that of the machine plus the seconds in `file`."""

    def now() -> datetime:
        shift = timedelta(seconds=float(file.read_text()))
        return datetime.now(UTC) + shift  # noqa: TID251  (the machine's own)

    replace_clock(connection, now)


def shift_this_process() -> None:
    """Shift the clock of each later connection of this process, if a file is named."""
    path = os.environ.get(FILE)
    if not path:
        return
    connect = sqlite3.dbapi2.connect

    def connect_shifted(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **named)
        shift_connection(connection, Path(path))
        return connection

    for module in (sqlite3, sqlite3.dbapi2):
        vars(module)["connect"] = connect_shifted
