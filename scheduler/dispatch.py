"""Send the operations, backfills and notices of the outbox to Celery."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

import sqlalchemy as sa

from broker.sending import Sent, send_backfills, send_notices, send_reserved
from models.sql import read_clock
from models.store import notices
from models.store.operations import backfills
from models.store.operations.reserve import reserve_sendable

T = TypeVar("T")

BATCH = 1_000


def dispatch_ready(engine: sa.Engine, to_ours: bool = True) -> Sent:
    """Reserve and send all sendable operations; stop at the first failed flush.

    Unless `to_ours`, those of our own workers wait for a later tick.
    """
    error = None if to_ours else "unavailable a moment ago"
    ready = partial(reserve_sendable, to_ours=to_ours)
    return _dispatch(engine, ready, partial(send_reserved, error=error), error)


def dispatch_backfills(engine: sa.Engine) -> Sent:
    """Reserve and send backfills that no worker has recorded; stop at the first failed flush."""
    return _dispatch(engine, backfills.reserve_sendable, send_backfills)


def dispatch_notices(engine: sa.Engine) -> Sent:
    """Reserve and send all sendable notices; stop at the first failed flush."""
    return _dispatch(engine, notices.reserve, send_notices)


def _dispatch(
    engine: sa.Engine,
    reserve: Callable[[sa.Connection, int, datetime], Sequence[T]],
    send: Callable[[sa.Engine, Sequence[T]], Sent],
    known: str | None = None,
) -> Sent:
    """Send what is sendable at the start; what a worker puts back meanwhile waits for a tick.

    `known` is the error that our broker has already.
    """
    count = 0
    application_error: str | None = None
    begun_at: datetime | None = None
    while True:
        with engine.begin() as connection:
            now = read_clock(connection)
            begun_at = begun_at or now
            # If the clock went back, what was just sent would be sendable again.
            reserved = reserve(connection, BATCH, begun_at) if now >= begun_at else ()
        if not reserved:
            return Sent(count, None, application_error)
        sent = send(engine, reserved)
        count += sent.count
        application_error = sent.application_error or application_error
        if sent.error != known:
            return Sent(count, sent.error, application_error)
        if len(reserved) < BATCH:
            return Sent(count, None, application_error)
