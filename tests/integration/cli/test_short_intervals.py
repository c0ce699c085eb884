"""A daemon that ticks more often than once a minute keeps shorter intervals."""

import json
import shutil
from pathlib import Path

import pytest

from cli.main import run
from tests.factories import make_document


@pytest.mark.parametrize(("tick_seconds", "code"), [("1", 0), ("60", 2)])
def test_the_shortest_interval_is_the_tick_that_is_set(
    tick_seconds: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sqlite_template: Path,
) -> None:
    (tmp_path / "home").mkdir()
    shutil.copy(sqlite_template, tmp_path / "home" / "minutebook.db")
    monkeypatch.setenv("SCHED_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SCHED_SCHEDULER_TICK_SECONDS", tick_seconds)
    document = tmp_path / "action.json"
    document.write_text(json.dumps(make_document(name="often", when={"every": 1})))

    for command in ("check", "add", "apply"):
        assert run(["action", command, str(document)]) == code
