from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from models.store.operations import get_operation_state
from runtime.database import default_engine


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SCHED_HOME", str(tmp_path / "home"))
    default_engine.cache_clear()
    yield tmp_path / "home"
    default_engine.cache_clear()


def test_without_a_database_an_operation_is_unknown_and_no_file_is_made(home: Path) -> None:
    assert get_operation_state(uuid4()) == "unknown"
    assert not home.exists()


def test_an_operation_is_unknown_in_an_empty_database(home: Path) -> None:
    home.mkdir()
    (home / "minutebook.db").touch()

    assert get_operation_state(uuid4()) == "unknown"
    assert (home / "minutebook.db").stat().st_size == 0
