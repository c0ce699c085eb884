"""One installation per storm, with its own broker."""

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from pydantic import SecretStr

from runtime.config import Settings
from tests.acceptance.installation import Installation
from tests.chaos.broker_faults import Messages, Server
from tests.chaos.in_rabbitmq import InRabbitMQ
from tests.chaos.in_redis import InRedis
from tests.chaos.storm import Storm, environment
from tests.rabbitmq import running_node
from tests.servers import running_broker

MakeStorm = Callable[[str, str, int, float], Storm]


@pytest.fixture
def make_storm(
    request: pytest.FixtureRequest, home_of: Callable[[str], Settings]
) -> Iterator[MakeStorm]:
    """Return a factory of storms on a store and a broker; all their processes end with the test."""
    with ExitStack() as servers:

        def make(store: str, broker: str, seed: int, seconds: float) -> Storm:
            redis = servers.enter_context(running_broker())
            node = servers.enter_context(running_node()) if broker == "rabbitmq" else None
            url = SecretStr(node.url if node else redis.url)
            settings = home_of(store).model_copy(update={"broker_url": url})
            installation = Installation(store, settings, redis, environment(settings.home))
            is_served = store == "postgresql"
            server = request.getfixturevalue("postgresql") if is_served else None
            if server is not None:
                # Other tests use the same server: as fast as before.
                servers.callback(server.start)
                servers.callback(server.stop)
            servers.callback(installation.close)
            ours: tuple[Server, Messages] = redis, InRedis(installation)
            if node is not None:
                ours = node, InRabbitMQ(node)
            return Storm(installation, (server, *ours), seed, seconds)

        yield make
    # The client of RabbitMQ leaves the socket of a handshake that the node broke off.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
