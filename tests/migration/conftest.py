"""Databases without a schema."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from runtime.config import load_settings
from runtime.database import make_engine
from tests.servers import PostgreSQL


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    """An engine on a database without any table."""
    environ = {}
    if request.param == "postgresql":
        server: PostgreSQL = request.getfixturevalue("postgresql")
        name = f"empty_{tmp_path.name[-20:].lower().replace('-', '_')}"
        server.execute(f"CREATE DATABASE {name}")
        environ = {"SCHED_DATABASE_URL": server.url(name)}
    engine = make_engine(load_settings(tmp_path, environ))
    yield engine
    engine.dispose()
