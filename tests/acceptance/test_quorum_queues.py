"""On a RabbitMQ whose queues are quorum queues by default, as the handbook sets it."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from amqp.exceptions import PreconditionFailed
from pydantic import SecretStr

from runtime.config import Settings
from tests.acceptance.installation import Installation
from tests.rabbitmq import RabbitMQ, running_node
from tests.servers import Broker

# What `default_queue_type = quorum` in rabbitmq.conf sets.
QUORUM = "-rabbit default_queue_type rabbit_quorum_queue"


@pytest.fixture
def node() -> Iterator[RabbitMQ]:
    with running_node(QUORUM) as made:
        yield made


def has_quorum_queues(node: RabbitMQ) -> bool:
    with node.channel() as channel:
        channel.queue_declare("asked", durable=True, auto_delete=False)
    classic = {"x-queue-type": "classic"}
    try:
        with node.channel() as channel:
            channel.queue_declare("asked", durable=True, auto_delete=False, arguments=classic)
    except PreconditionFailed:
        return True
    return False


def test_daemon_and_worker_work_with_them(
    node: RabbitMQ, home_of: Callable[[str], Settings], broker: Broker
) -> None:
    if not has_quorum_queues(node):
        pytest.skip("this RabbitMQ has no default type of queues")
    settings = home_of("sqlite").model_copy(update={"broker_url": SecretStr(node.url)})
    with closing(Installation("sqlite", settings, broker)) as installation:
        daemon = installation.daemon()
        installation.worker(is_awaited=True)
        ids = [installation.operation(installation.action(f"one of {n}")) for n in range(3)]

        assert installation.all_end(ids) == ["success"] * 3
        assert len(installation.trace.starts()) == 3
        assert daemon.is_alive
