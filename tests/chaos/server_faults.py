"""Faults of a storm's broker, its messages, and its database."""

import signal
import sqlite3
from collections.abc import Callable
from random import Random
from typing import Any

import sqlalchemy as sa
from kombu import Connection, Producer

from models.operation import OperationState
from models.tables import operations
from models.worker_kinds import OURS
from tests.acceptance.installation import Installation
from tests.chaos.crew import freeze_for_a_while
from tests.chaos.faults import Fault, Later
from tests.rabbitmq import RabbitMQ
from tests.servers import Broker, PostgreSQL
from tests.transactions import fetched

QUEUES = ("minutebook.quick", "minutebook.heavy")
MOST_FORGED = 20
# A crash of the server loses no commit, if the machine itself does not crash.
SURVIVES_A_CRASH = ("-c", "fsync=off", "-c", "full_page_writes=off")


class ServerFaults:
    def __init__(
        self,
        installation: Installation,
        server: PostgreSQL | None,
        broker: Broker | RabbitMQ,
        later: Later,
    ) -> None:
        self.installation, self.server, self.broker = installation, server, broker
        self.later = later

    def set_up(self) -> None:
        """Make PostgreSQL keep its commits through its own crash."""
        if self.server is not None:
            self.server.stop()
            self.server.start(SURVIVES_A_CRASH)

    def acts(self) -> dict[str, Callable[[Fault], None]]:
        acts = {
            "stop broker": lambda fault: self._stop_broker(fault, signal.SIGTERM),
            "kill broker": lambda fault: self._stop_broker(fault, signal.SIGKILL),
            "empty broker": self._empty,
            "freeze broker": self._freeze_broker,
            "flush broker": self._flush,
            "forge messages": self._forge,
        }
        if (server := self.server) is None:
            return {**acts, "lock database": self._lock}
        return {
            **acts,
            "freeze database": lambda fault: self._freeze(fault, server),
            "restart database": lambda fault: self._stop(fault, server, signal.SIGINT),
            "crash database": lambda fault: self._stop(fault, server, signal.SIGQUIT),
        }

    def _stop_broker(self, fault: Fault, how: signal.Signals) -> None:
        self.later(fault, self.broker.start)
        self.broker.stop(how)

    def _empty(self, fault: Fault) -> None:
        self._stop_broker(fault, signal.SIGKILL)
        self.broker.forget()

    def _freeze_broker(self, fault: Fault) -> None:
        self.later(fault, lambda: self.broker.send_signal(signal.SIGCONT))
        self.broker.send_signal(signal.SIGSTOP)

    def _flush(self, _: Fault) -> None:
        """Lose all that waits; on Redis, with all else that is in it."""
        if isinstance(self.broker, Broker):
            with self.broker.client() as client:
                client.flushall()
            return
        with self.broker.channel() as channel:
            for queue in QUEUES:
                channel.queue_purge(queue)

    def _forge(self, fault: Fault) -> None:
        """Deliver sent messages again, in any order: of any operation, of old attempts."""
        random, columns = Random(fault.number), operations.c
        asked = (columns.id, columns.attempt, columns.state, columns.task, columns.queue)
        rows = fetched(self.installation.engine, sa.select(*asked)).all()
        with Connection(self.broker.url) as connection:
            producer = connection.Producer(serializer="json")
            for row in random.sample(rows, min(MOST_FORGED, len(rows))):
                # The attempt of a pending operation may not have been sent yet.
                most = row.attempt - 1 if row.state == OperationState.PENDING else row.attempt
                if most >= 1:
                    _put(producer, row, random.randint(1, most))

    def _lock(self, fault: Fault) -> None:
        path = self.installation.home / "minutebook.db"
        # Another thread repairs.
        locker = sqlite3.connect(path, timeout=2, isolation_level=None, check_same_thread=False)
        try:
            locker.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            locker.close()
            raise
        self.later(fault, locker.close)

    def _freeze(self, fault: Fault, server: PostgreSQL) -> None:
        assert server.process is not None
        freeze_for_a_while(server.process.pid, fault, self.later)

    def _stop(self, fault: Fault, server: PostgreSQL, how: signal.Signals) -> None:
        self.later(fault, lambda: server.start(SURVIVES_A_CRASH))
        server.stop(how)


def _put(producer: Producer, row: Any, attempt: int) -> None:
    """Put the message of an attempt into its queue, in Celery's form."""
    id = str(row.id)
    headers = {"lang": "py", "task": row.task, "id": id, "root_id": id, "retries": 0}
    body = [[id, attempt], {}, dict.fromkeys(("callbacks", "errbacks", "chain", "chord"))]
    producer.publish(body, routing_key=OURS.listed(row.queue), headers=headers, correlation_id=id)
