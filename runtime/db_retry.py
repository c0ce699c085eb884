"""Retry claims and writes: a restart of the database must not lose an outcome."""

import logging
from collections.abc import Callable
from threading import Event
from typing import TypeVar
from uuid import UUID

import sqlalchemy as sa

from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY, reason_of

logger = logging.getLogger("minutehand.worker")

T = TypeVar("T")
U = TypeVar("U")

RETRY_S = 1.0
# How long to retry an outcome; then the sweep takes the operation back.
KEEP_S = 600.0
# Two operations of an action may start at once; all but one see the other at the next try.
MOST_STARTS = 5


def start(operation_id: UUID, claim: Callable[[], T], otherwise: U) -> T | U:
    """Return the result of `claim`, which has a transaction of its own for each call.

    It is called again if another operation of the action starts at the same moment; `otherwise` is
    returned if one did five times.
    """
    for _ in range(MOST_STARTS):
        try:
            return claim()
        except sa.exc.IntegrityError:
            logger.info(
                "operation %s: another one of its action is starting; trying again", operation_id
            )
    return otherwise


def persist(engine: sa.Engine, act: Callable[[sa.Connection], T]) -> T:
    """Run `act` in its own transaction; retry while the database is unavailable.

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
