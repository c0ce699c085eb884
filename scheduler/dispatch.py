"""The outbox: operations, backfills and notices that may be sent now, to Celery."""

import sqlalchemy as sa

from models.store import backfills, notices, outbox
from tasks.sending import Sent, send_backfills, send_notices, send_reserved

BATCH = 1_000


def dispatch_ready(engine: sa.Engine) -> Sent:
    """Reserve and send all operations that may be sent now; stops at the first failed flush."""
    count = 0
    while True:
        with engine.begin() as connection:
            messages = outbox.reserve_sendable(connection, BATCH)
        if not messages:
            return Sent(count)
        sent = send_reserved(engine, messages)
        count += sent.count
        if sent.error is not None:
            return Sent(count, sent.error)


def dispatch_backfills(engine: sa.Engine) -> Sent:
    """Reserve the backfills that nobody works on, and ask workers to go on with them."""
    with engine.begin() as connection:
        turns = backfills.reserve_sendable(connection, BATCH)
    return send_backfills(engine, turns) if turns else Sent(0)


def dispatch_notices(engine: sa.Engine) -> Sent:
    """Reserve and send all notices that may be sent now; stops at the first failed flush."""
    count = 0
    while True:
        with engine.begin() as connection:
            owed = notices.reserve(connection, BATCH)
        if not owed:
            return Sent(count)
        sent = send_notices(engine, owed)
        count += sent.count
        if sent.error is not None:
            return Sent(count, sent.error)
