"""Faults of a broker and its messages."""

import base64
import json
import signal
from collections.abc import Callable
from random import Random
from uuid import uuid4

import sqlalchemy as sa

from broker.names import in_broker
from models.operation import OperationState
from models.tables import operations
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.chaos.faults import Fault, Later

QUEUES = ("minutehand.quick", "minutehand.heavy")

# In a long storm each repetition would repeat those of the last.
MOST_REPEATED = 50


class BrokerFaults:
    """The faults of one broker."""

    def __init__(self, installation: Installation, later: Later) -> None:
        self.installation, self.later = installation, later

    def acts(self) -> dict[str, Callable[[Fault], None]]:
        """Return the faults of a broker."""
        return {
            "stop broker": lambda fault: self._stop(fault, signal.SIGTERM),
            "kill broker": lambda fault: self._stop(fault, signal.SIGKILL),
            "empty broker": self._empty,
            "freeze broker": self._freeze,
            "flush broker": lambda _: self._flush(),
            "repeat messages": lambda _: self._repeat(),
            "shuffle messages": self._shuffle,
            "forge messages": self._forge,
        }

    def _stop(self, fault: Fault, how: signal.Signals) -> None:
        self.later(fault, self.installation.broker.start)
        self.installation.broker.stop(how)

    def _empty(self, fault: Fault) -> None:
        self._stop(fault, signal.SIGKILL)
        self.installation.broker.forget()

    def _freeze(self, fault: Fault) -> None:
        self.later(fault, self.installation.thaw_broker)
        self.installation.freeze_broker()

    def _flush(self) -> None:
        with self.installation.broker.client() as client:
            client.flushall()

    def _repeat(self) -> None:
        for queue in QUEUES:
            self.installation.repeat_messages(queue, 2, most=MOST_REPEATED)

    def _shuffle(self, fault: Fault) -> None:
        """Deliver the waiting messages in another order."""
        with self.installation.broker.client() as client:
            for queue in QUEUES:
                raws = client.lrange(queue, 0, -1)
                Random(fault.number).shuffle(raws)
                for raw in raws:
                    # A message that a worker took meanwhile stays taken.
                    if client.lrem(queue, 1, raw):
                        client.lpush(queue, raw)

    def _forge(self, fault: Fault) -> None:
        """Deliver sent messages again, at the head: of any operation, of old attempts."""
        random = Random(fault.number)
        with reading(self.installation.engine) as connection:
            rows = connection.execute(
                sa.select(operations.c.id, operations.c.attempt, operations.c.state,
                          operations.c.task, operations.c.queue)
            ).all()  # fmt: skip
        with self.installation.broker.client() as client:
            for row in random.sample(rows, min(20, len(rows))):
                # The attempt of a pending operation may not have been sent yet.
                most = row.attempt - 1 if row.state == OperationState.PENDING else row.attempt
                if most >= 1:
                    raw = _message(row.id, random.randint(1, most), row.task)
                    push = client.lpush if random.random() < 0.5 else client.rpush
                    push(in_broker(row.queue), raw)


def _message(id: object, attempt: int, task: str) -> str:
    """Return a message in Celery's form for Redis."""
    body = json.dumps(
        [
            [str(id), attempt],
            {},
            {"callbacks": None, "errbacks": None, "chain": None, "chord": None},
        ]
    )
    headers = {"lang": "py", "task": task, "id": str(id), "root_id": str(id), "retries": 0}
    properties = {
        "correlation_id": str(id),
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": "minutehand.quick"},
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
