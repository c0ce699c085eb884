"""What a worker takes from Redis: nothing of it stays there, and what it puts back is unchanged."""

from uuid import uuid4

import pytest

from broker.app import app, configure, publish
from models.store.operations.reserve import Message
from models.worker_kinds import EXECUTE_QUICK
from runtime.config import Settings
from tests.servers import Broker


def sent(settings: Settings) -> Message:
    configure(settings)
    message = Message(uuid4(), 1, EXECUTE_QUICK, "quick")
    list(publish([message]))
    return message


def test_a_message_that_is_taken_leaves_nothing_in_the_broker(
    settings: Settings, broker: Broker
) -> None:
    sent(settings)

    with app.connection_for_read() as connection:
        taken = connection.SimpleQueue("minutebook.quick").get(block=False)
        with broker.client() as client:
            left = [
                key for key in client.scan_iter() if b"unacked" in key or key == b"minutebook.quick"
            ]
        taken.ack()

    assert left == []


@pytest.mark.parametrize("closes", [False, True], ids=["rejected", "closed"])
def test_a_message_that_is_put_back_is_as_it_was(
    settings: Settings, broker: Broker, closes: bool
) -> None:
    message = sent(settings)

    with app.connection_for_read() as connection:
        taken = connection.SimpleQueue("minutebook.quick").get(block=False)
        if not closes:
            taken.requeue()
    with app.connection_for_read() as connection:
        again = connection.SimpleQueue("minutebook.quick").get(block=False)
        again.ack()

    assert (again.body, again.headers) == (taken.body, taken.headers)
    assert broker.messages("quick") == []
    assert again.headers["id"] == str(message.id)
