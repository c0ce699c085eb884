"""What a refused command says to write instead works when it is followed to the letter."""

import json
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli.main import run
from tests.integration.cli.conftest import Call
from tests.tables import table

ACTION = {"name": "a", "when": {"cron_rule": "0 3 * * *"}, "operations": {"maintenance": {}}}
FILES: dict[str, object] = {
    "a.json": ACTION,
    "c.json": {**ACTION, "name": "c"},
    "rule.json": {**ACTION, "name": "d", "when": {"cron_rule": "61 3 * * *"}},
    "top.json": {**ACTION, "task": "shop.x"},
    "big.json": [{**ACTION, "name": f"n{n}", "note": "x" * 3_000} for n in range(100)],
    "half.json": [{**ACTION, "name": f"n{n}"} for n in range(50)],
    "shop.json": {"name": "shop", "zone": "UTC"},
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Path:
    """A folder of documents, with the database of an action, a small app and a user."""
    folder = tmp_path_factory.mktemp("filled")
    for name, document in FILES.items():
        (folder / name).write_text(json.dumps(document))
    shutil.copy(sqlite_template, folder / "minutebook.db")
    home = ("--home", str(folder))
    assert run([*home, "action", "add", str(folder / "a.json")]) == 0
    assert run([*home, "app", "add", "shop"]) == 0
    assert run([*home, "user", "add", "ann", "--email", "ann@example.com"]) == 0
    # Whole, without what SQLite keeps beside it.
    with closing(sqlite3.connect(folder / "minutebook.db")) as connection:
        connection.execute("VACUUM INTO ?", [str(folder / "filled.db")])
    return folder


@pytest.fixture
def made(call: Call, home: Path, filled: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Commands in that folder, on a copy of its database."""
    shutil.copy(filled / "filled.db", home / "minutebook.db")
    monkeypatch.chdir(filled)
    monkeypatch.setenv("EDITOR", "true")
    return call


@pytest.mark.parametrize(
    ("wrong", "advice", "right"),
    table(__file__, "advice_that_is_heeded"),
)
def test_a_command_is_understood_once_its_error_is_heeded(
    made: Call, wrong: str, advice: str, right: str
) -> None:
    refused = made(*shlex.split(wrong))
    heeded = made(*shlex.split(right))

    assert refused.code == 2
    assert advice in refused.err
    assert len(refused.err.splitlines()) == 1
    assert "Value error" not in refused.err
    assert heeded.code == 0
