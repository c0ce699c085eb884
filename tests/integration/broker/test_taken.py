"""Messages of ours in Redis: as kombu would push them; nothing stays of those that are taken.

What a worker puts back is unchanged.
"""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from broker.app import app, configure, kept_producer, publish, publish_one
from models.store.operations.reserve import Message
from models.worker_kinds import EXECUTE_HEAVY, EXECUTE_QUICK, METATASK_SCHEDULE
from runtime.config import Settings
from tests.servers import Broker


def sent(settings: Settings) -> Message:
    configure(settings)
    message = Message(uuid4(), 1, EXECUTE_QUICK, "quick")
    list(publish([message]))
    return message


def test_a_message_that_is_taken_leaves_nothing_there(settings: Settings, broker: Broker) -> None:
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
def test_a_message_put_back_is_as_it_was(settings: Settings, broker: Broker, closes: bool) -> None:
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


QUEUES = ("quick", "100%(id)s", "ünïcode")


def pushed(broker: Broker, queue: str) -> list[dict[str, Any]]:
    """Return the items of a queue, oldest first, without what is random."""
    with broker.client() as client:
        items = [json.loads(raw) for raw in client.lrange(f"minutebook.{queue}", 0, -1)[::-1]]
        client.delete(f"minutebook.{queue}")
    for one in items:
        tag = one["properties"].pop("delivery_tag")
        assert UUID(tag)  # 128 bits; kombu writes hyphens between them
    return items


def test_a_message_is_what_kombu_pushes(settings: Settings, broker: Broker) -> None:
    configure(settings)
    tasks = (EXECUTE_QUICK, EXECUTE_HEAVY, METATASK_SCHEDULE)
    for queue in QUEUES:
        messages = [Message(uuid4(), number, task, queue) for number in (1, 70) for task in tasks]
        list(publish(messages))
        ours = pushed(broker, queue)
        for message in messages:
            publish_one(kept_producer(), message)

        assert ours == pushed(broker, queue)
        assert [one["headers"]["id"] for one in ours] == [str(one.id) for one in messages]


def test_each_message_has_a_tag_of_its_own(settings: Settings, broker: Broker) -> None:
    configure(settings)
    list(publish([Message(uuid4(), 1, EXECUTE_QUICK, "quick") for _ in range(1_200)]))

    with broker.client() as client:
        items = [json.loads(raw) for raw in client.lrange("minutebook.quick", 0, -1)]
    assert len({one["properties"]["delivery_tag"] for one in items}) == 1_200
