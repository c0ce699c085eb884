"""Retry claims and writes: a restart of the database must not lose an outcome."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Event
from typing import TypeVar
from uuid import UUID

import sqlalchemy as sa

from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY, DEADLOCK, reason_of, sqlstate_of
from runtime.logs.events import EventLog

logger = EventLog("minutebook.worker")

T = TypeVar("T")
U = TypeVar("U")
Begin = Callable[[sa.Engine], AbstractContextManager[sa.Connection]]

RETRY_S = 1.0
# How long to retry an outcome; then the sweep takes the operation back.
KEEP_S = 600.0
MOST_DEADLOCKS = 3
AFTER_DEADLOCK_S = 0.2
# Two operations of an action may start at once; all but one see the other at the next try.
MOST_STARTS = 5


def in_transaction(
    engine: sa.Engine, act: Callable[[sa.Connection], T], begin: Begin = sa.Engine.begin
) -> T:
    """Return the result of `act` in a transaction of its own.

    It is run again if PostgreSQL ended it because another one and it waited for each other, which
    is rare: most transactions lock rows in one order.
    """
    for _ in range(MOST_DEADLOCKS):
        try:
            with begin(engine) as connection:
                return act(connection)
        except sa.exc.OperationalError as error:
            if sqlstate_of(error) != DEADLOCK:
                raise
        # The other transaction goes on now, and may need more of the same rows.
        Event().wait(AFTER_DEADLOCK_S)
    with begin(engine) as connection:
        return act(connection)


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
                "operation_start_repeated",
                "operation {operation}: another one of its action is starting; trying again",
                operation_id,
            )
    return otherwise


def persist(
    engine: sa.Engine, act: Callable[[sa.Connection], T], begin: Begin = sa.Engine.begin
) -> T:
    """Run `act` in its own transaction; retry while the database is unavailable.

    Raises SQLAlchemy's error after ten minutes, any other error of `act` at once.
    """
    give_up_at = monotonic() + KEEP_S
    while True:
        try:
            with begin(engine) as connection:
                return act(connection)
        except DATABASE_AWAY as error:
            if monotonic() >= give_up_at:
                raise
            logger.warning(
                "database_unavailable",
                "database unavailable, trying again: {error}",
                reason_of(error),
            )
            Event().wait(RETRY_S)
