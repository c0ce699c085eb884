"""Retry writes while the database is away: its restart must not lose an outcome."""

import logging
from collections.abc import Callable
from threading import Event
from typing import TypeVar

import sqlalchemy as sa

from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY, reason_of

logger = logging.getLogger("minutehand.worker")

T = TypeVar("T")

RETRY_S = 1.0
# How long to retry an outcome; then the sweep takes the operation back.
KEEP_S = 600.0


def persist(engine: sa.Engine, act: Callable[[sa.Connection], T]) -> T:
    """Run `act` in its own transaction; retry while the database is away.

    Raises SQLAlchemy's error after ten minutes, any other error of `act` at once.
    """
    give_up_at = monotonic() + KEEP_S
    while True:
        try:
            with engine.begin() as connection:
                return act(connection)
        except DATABASE_AWAY as error:
            if monotonic() >= give_up_at:
                raise
            logger.warning("database unavailable, trying again: %s", reason_of(error))
            Event().wait(RETRY_S)
