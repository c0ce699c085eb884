"""A clock that a test sets: imported by each Python process that has this folder on its path.

On SQLite the database's clock is this machine's, which only root may set: here the SQL function
that reads it adds the seconds that stand in the file named by MINUTEBOOK_CLOCK_SHIFT.
"""

import os
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

VARIABLE = "MINUTEBOOK_CLOCK_SHIFT"


def shift_clock(connection: sqlite3.Connection, shift: Path) -> None:
    """Let `strftime('…', 'now')` of this connection read the shifted clock."""

    def strftime(form: str, instant: str, offset: str = "0 seconds") -> str:
        from runtime.clock import utc_now

        assert instant == "now"
        seconds = float(shift.read_text()) + float(offset.removesuffix(" seconds"))
        at = utc_now() + timedelta(seconds=seconds)
        # SQLite's %f has the seconds too, with milliseconds.
        return at.strftime(form.replace("%f", f"{at:%S}.{at.microsecond // 1000:03d}"))

    connection.create_function("strftime", -1, strftime)


def _shift_all(shift: Path) -> None:
    real = sqlite3.connect

    def connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(*arguments, **named)
        shift_clock(connection, shift)
        return connection

    sqlite3.connect = sqlite3.dbapi2.connect = connect  # type: ignore[assignment]


if VARIABLE in os.environ:
    _shift_all(Path(os.environ[VARIABLE]))
