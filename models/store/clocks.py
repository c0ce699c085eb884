"""Compare the database's clock with this machine's, and with what it was."""

from datetime import datetime

import sqlalchemy as sa

from models.sql import read_clock
from runtime.clock import utc_now


def read_both(connection: sa.Connection) -> tuple[datetime, float]:
    """Return the database's clock, and by how many seconds this machine's is ahead of it."""
    asked = utc_now()
    now = read_clock(connection)
    return now, skew_s(asked, now, utc_now())


def skew_s(asked: datetime, now: datetime, answered: datetime) -> float:
    """Return by how many seconds this machine's clock is ahead of `now` at least.

    `now` was read at any moment from `asked` to `answered`: a pooler may hold a question for long.
    """
    nearest = min(max(now, asked), answered)
    return round((nearest - now).total_seconds(), 3)
