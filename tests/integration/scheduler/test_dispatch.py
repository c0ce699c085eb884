"""What one dispatch sends: all that is sendable when it begins, and nothing twice."""

from collections.abc import Sequence
from datetime import UTC, datetime

import sqlalchemy as sa

from broker.sending import Sent
from models.store.operations import outbox
from models.store.operations.outbox import Message
from scheduler.dispatch import BATCH, _dispatch
from tests.factories import make_action, make_operation, update_operation

AT = datetime(2026, 8, 1, tzinfo=UTC)


def test_what_workers_put_back_at_once_does_not_keep_a_tick_from_ending(engine: sa.Engine) -> None:
    id = make_operation(engine, make_action(engine), AT)
    update_operation(engine, id, not_before=AT)
    sendings = 0

    def send(engine: sa.Engine, messages: Sequence[Message]) -> Sent:
        nonlocal sendings
        sendings += 1
        # Within the clock's millisecond it may be sent again.
        assert sendings < BATCH
        with engine.begin() as connection:
            outbox.release_unsent(connection, messages)
        return Sent(len(messages))

    _dispatch(engine, outbox.reserve_sendable, send)

    assert sendings >= 1
