"""Faults of a broker and its messages."""

import signal
from collections.abc import Callable
from random import Random
from typing import Any

import sqlalchemy as sa
from kombu import Connection, Producer

from models.operation import OperationState
from models.tables import operations
from models.worker_kinds import OURS
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.chaos.faults import Fault, Later
from tests.chaos.in_rabbitmq import InRabbitMQ
from tests.chaos.in_redis import InRedis
from tests.rabbitmq import RabbitMQ
from tests.servers import Broker

MOST_FORGED = 20
Server = Broker | RabbitMQ
Messages = InRedis | InRabbitMQ


class BrokerFaults:
    def __init__(
        self, installation: Installation, server: Server, messages: Messages, later: Later
    ) -> None:
        self.installation, self.server, self.messages = installation, server, messages
        self.later = later

    def acts(self) -> dict[str, Callable[[Fault], None]]:
        return {
            "stop broker": lambda fault: self._stop(fault, signal.SIGTERM),
            "kill broker": lambda fault: self._stop(fault, signal.SIGKILL),
            "empty broker": self._empty,
            "freeze broker": self._freeze,
            "flush broker": lambda _: self.messages.flush(),
            "repeat messages": lambda _: self.messages.repeat(),
            "shuffle messages": lambda fault: self.messages.shuffle(Random(fault.number)),
            "forge messages": self._forge,
        }

    def _stop(self, fault: Fault, how: signal.Signals) -> None:
        self.later(fault, self.server.start)
        self.server.stop(how)

    def _empty(self, fault: Fault) -> None:
        self._stop(fault, signal.SIGKILL)
        self.server.forget()

    def _freeze(self, fault: Fault) -> None:
        self.later(fault, lambda: self.server.send_signal(signal.SIGCONT))
        self.server.send_signal(signal.SIGSTOP)

    def _forge(self, fault: Fault) -> None:
        """Deliver sent messages again: of any operation, of old attempts."""
        random = Random(fault.number)
        with reading(self.installation.engine) as connection:
            rows = connection.execute(
                sa.select(operations.c.id, operations.c.attempt, operations.c.state,
                          operations.c.task, operations.c.queue)
            ).all()  # fmt: skip
        with Connection(self.server.url) as connection:
            producer = connection.Producer(serializer="json")
            for row in random.sample(rows, min(MOST_FORGED, len(rows))):
                # The attempt of a pending operation may not have been sent yet.
                most = row.attempt - 1 if row.state == OperationState.PENDING else row.attempt
                if most >= 1:
                    _put(producer, row, random.randint(1, most))


def _put(producer: Producer, row: Any, attempt: int) -> None:
    """Put the message of an attempt into its queue, in Celery's form."""
    id = str(row.id)
    headers = {"lang": "py", "task": row.task, "id": id, "root_id": id, "retries": 0}
    body = [[id, attempt], {}, dict.fromkeys(("callbacks", "errbacks", "chain", "chord"))]
    producer.publish(body, routing_key=OURS.listed(row.queue), headers=headers, correlation_id=id)
