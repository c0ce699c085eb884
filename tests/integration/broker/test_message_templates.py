"""Messages written by a template are those that kombu would have pushed."""

import json
from typing import Any
from uuid import UUID, uuid4

from broker.app import configure, kept_producer, publish, publish_one
from models.store.operations.reserve import Message
from models.worker_kinds import EXECUTE_HEAVY, EXECUTE_QUICK, METATASK_SCHEDULE
from runtime.config import Settings
from tests.servers import Broker

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
