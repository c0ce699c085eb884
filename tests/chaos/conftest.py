"""One installation per storm, with its own broker."""

import shutil
import signal
from collections.abc import Callable, Iterator

import pytest
from pydantic import SecretStr

from runtime.config import Settings
from tests.acceptance.installation import Installation
from tests.chaos.storm import Storm, environment
from tests.servers import Broker, free_port, temporary_folder

MakeStorm = Callable[[str, int, float], Storm]


@pytest.fixture
def make_storm(
    request: pytest.FixtureRequest, home_of: Callable[[str], Settings]
) -> Iterator[MakeStorm]:
    """Return a factory of storms on a store; all their processes end with the test."""
    folder = temporary_folder()
    broker = Broker(folder, free_port())
    broker.start()
    made: list[Storm] = []

    def make(store: str, seed: int, seconds: float) -> Storm:
        url = SecretStr(broker.url)
        settings = home_of(store).model_copy(update={"broker_url": url})
        installation = Installation(store, settings, broker, environment(settings.home))
        is_served = store == "postgresql"
        server = request.getfixturevalue("postgresql") if is_served else None
        made.append(Storm(installation, server, seed, seconds))
        return made[-1]

    yield make
    for storm in made:
        storm.installation.close()
        if storm.server is not None:
            # Other tests use the same server: as fast as before.
            storm.server.stop()
            storm.server.start()
    broker.stop(signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
