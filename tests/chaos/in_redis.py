"""The messages of a storm in Redis."""

import base64
import json
from collections.abc import Sequence
from random import Random
from typing import Any
from uuid import uuid4

from models.worker_kinds import OURS
from tests.acceptance.installation import Installation

QUEUES = ("minutebook.quick", "minutebook.heavy")
# In a long storm each repetition would repeat those of the last.
MOST_REPEATED = 50
NO_MORE = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


class InRedis:
    """The messages in one Redis."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation

    def flush(self) -> None:
        """Lose all, with all else that is in Redis."""
        with self.installation.broker.client() as client:
            client.flushall()

    def repeat(self) -> None:
        """Deliver some of those that wait twice more."""
        for queue in QUEUES:
            self.installation.repeat_messages(queue, 2, most=MOST_REPEATED)

    def shuffle(self, random: Random) -> None:
        """Deliver those that wait in another order."""
        with self.installation.broker.client() as client:
            for queue in QUEUES:
                raws = client.lrange(queue, 0, -1)
                random.shuffle(raws)
                for raw in raws:
                    # A message that a worker took meanwhile stays taken.
                    if client.lrem(queue, 1, raw):
                        client.lpush(queue, raw)

    def put(self, forged: Sequence[tuple[str, str, list[Any]]], random: Random) -> None:
        """Put messages into queues, some at the head."""
        with self.installation.broker.client() as client:
            for queue, task, arguments in forged:
                push = client.lpush if random.random() < 0.5 else client.rpush
                push(OURS.listed(queue), _message(task, arguments))


def _message(task: str, arguments: list[Any]) -> str:
    """Return a message in Celery's form for Redis."""
    body = json.dumps([arguments, {}, NO_MORE])
    id = arguments[0]
    headers = {"lang": "py", "task": task, "id": id, "root_id": id, "retries": 0}
    properties = {
        "correlation_id": id,
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": "minutebook.quick"},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": str(uuid4()),
    }
    return json.dumps(
        {
            "body": base64.b64encode(body.encode()).decode(),
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": headers,
            "properties": properties,
        }
    )
