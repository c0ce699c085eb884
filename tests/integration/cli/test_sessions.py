"""Sessions of commands, each of which shows a fact: `sessions/*.yaml`; and heeded advice.

A session has the files that it needs, variables, and its calls in order: a command, its exit code
unless that is 0, and parts of what it prints; or files that are removed.
"""

import json
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import run
from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write
from tests.tables import table

FACTS = {
    fact: session
    for file in sorted(Path(__file__).parent.glob("sessions/*.yaml"))
    for fact, session in yaml.safe_load(file.read_text(encoding="utf-8")).items()
}


def whole(document: Any) -> Any:
    """Return a document; one that begins with `action` is a valid action of that name."""
    if isinstance(document, list):
        return [whole(one) for one in document]
    if not isinstance(document, dict) or "action" not in document:
        return document
    return make_document(name=document["action"], **{
        key: value for key, value in document.items() if key != "action"
    })  # fmt: skip


@pytest.mark.parametrize("fact", FACTS)
def test_commands_answer_as_the_session_says(
    fact: str, call: Call, write: Write, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = FACTS[fact]
    monkeypatch.chdir(home.parent)
    for name, value in session.get("env", {}).items():
        monkeypatch.setenv(name, value)
    for name, document in session.get("files", {}).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        write(whole(document), name)

    for one in session["calls"]:
        if isinstance(one, dict):
            for name in map(Path, one["removed"]):
                name.rmdir() if name.is_dir() else name.unlink()
            continue
        command, *said = one
        done = call(*shlex.split(command))
        code, *texts = said if said and isinstance(said[0], int) else (0, *said)
        assert done.code == code, (command, done)
        for text in texts:
            assert text in done.out + done.err, command


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
