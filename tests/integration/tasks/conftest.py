"""Actions that run in this process, and a server that hears of their ends."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from runtime.config import Settings
from tasks import lease
from tests.integration.tasks.crew import Crew, Work
from tests.receiver import Receiver, receiver


@pytest.fixture
def work(own_steps: None, engine: sa.Engine, settings: Settings) -> Iterator[Work]:
    yield Work(engine, settings)
    lease.stopping.value = False


@pytest.fixture
def crew(own_steps: None, engine: sa.Engine, settings: Settings) -> Crew:
    return Crew(engine, settings)


@pytest.fixture
def web() -> Iterator[Receiver]:
    with receiver() as server:
        yield server
