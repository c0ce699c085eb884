"""One installation per test and store, with a broker of its own that a test may kill."""

import shutil
import signal
from collections.abc import Callable, Iterator

import pytest
from pydantic import SecretStr

from runtime.config import Settings
from tests.acceptance.installation import Installation
from tests.acceptance.shop import Shop
from tests.servers import Broker, free_port, temporary_folder


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store in turn; a test for one store only parametrises `store` itself."""
    return str(request.param)


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """A broker that this test may freeze, kill and empty."""
    folder = temporary_folder()
    server = Broker(folder, free_port())
    server.start()
    yield server
    server.stop(signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def installation(
    store: str, own_broker: Broker, home_of: Callable[[str], Settings]
) -> Iterator[Installation]:
    """A migrated installation without any process yet."""
    url = SecretStr(own_broker.url)
    settings = home_of(store).model_copy(update={"broker_url": url})
    made = Installation(store, settings, own_broker)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def shop(installation: Installation) -> Shop:
    """The example of a shop beside the installation."""
    return Shop(installation)
