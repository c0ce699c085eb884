"""Fixtures of the data tests: a small app and its steps."""

import pytest
import sqlalchemy as sa

from runtime.config import Settings
from tests.integration.data.steps.conftest import Work


@pytest.fixture
def work(engine: sa.Engine, settings: Settings) -> Work:
    """A small app `shop` without domains, and a factory of contexts."""
    return Work(engine, settings)
