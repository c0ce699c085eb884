"""Where an agent listens."""

from pathlib import Path

import pytest

from tests.servers import temporary_folder


@pytest.fixture
def path() -> Path:
    """Its socket, whose path must be short."""
    return temporary_folder() / "agent.sock"
