"""One installation per test and store, with a broker of its own that a test may kill."""

from collections.abc import Callable, Iterator

import pytest

from runtime.config import Settings
from tests.acceptance.installation import Installation, installed
from tests.acceptance.shop import Shop
from tests.servers import Broker, running_broker


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store in turn; a test for one store only parametrises `store` itself."""
    return str(request.param)


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """A broker that this test may freeze, kill and empty."""
    with running_broker() as server:
        yield server


@pytest.fixture
def installation(
    store: str, own_broker: Broker, home_of: Callable[[str], Settings]
) -> Iterator[Installation]:
    """A migrated installation without any process yet."""
    with installed(home_of(store), own_broker) as made:
        yield made


@pytest.fixture
def shop(installation: Installation) -> Shop:
    """The example of a shop beside the installation."""
    return Shop(installation)
