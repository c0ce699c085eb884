"""Fixtures of the data tests: a small app and its steps."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from data.settings import Settings
from tests.integration.data.steps.conftest import Work
from tests.web_source import WebSource, web_source


@pytest.fixture
def work(engine: sa.Engine, settings: Settings) -> Work:
    """A small app `shop` without domains, and a factory of contexts."""
    return Work(engine, settings)


@pytest.fixture
def web() -> Iterator[WebSource]:
    with web_source() as source:
        yield source
