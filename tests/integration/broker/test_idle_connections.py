"""No connection to a broker is silent for as long as proxies let one be."""

from collections.abc import Callable
from typing import Any

from broker.app import configure
from runtime.config import Settings

# HAProxy's in many configurations.
PROXY_CLOSES_AFTER_S = 30


def test_a_worker_speaks_on_each_connection_to_redis_before_a_proxy_closes_it(
    home_of: Callable[[str], Settings],
) -> None:
    app = configure(home_of("sqlite"))
    with app.connection_for_read() as connection:
        channel: Any = connection.default_channel
        with channel.conn_or_acquire() as client:
            driver_s = client.connection_pool.connection_kwargs["health_check_interval"]
        checks_each_s = channel.health_check_interval

    # The check sends something only if the driver finds that it is time, as late as the next one.
    assert checks_each_s + driver_s < PROXY_CLOSES_AFTER_S
