"""Sessions of commands, each of which shows a fact: `sessions/*.yaml`; advice, and what binds.

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
from uuid import UUID

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


@pytest.mark.parametrize(("wrong", "advice", "right"), table(__file__, "advice_that_is_heeded"))
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


# What reads or changes the action, the operation or the small app of another tenant by its id.
BY_ID = [str(case.values[0]) for case in table(__file__, "commands_by_id")]


@pytest.fixture
def theirs(call: Call, write: Write) -> dict[str, str]:
    """An action of the small app `default`, an operation of it, and the small app `shop`."""
    call("app", "apply", write({"name": "shop"}, "shop.json"))
    added = call("action", "add", write(make_document(name="secret plan")), "--json").json[0]
    (ran,) = [call("action", "run", "secret plan", "--json").json]
    return {
        "uid": added["uid"],
        "id": ran["id"],
        "document": write({"name": "default", "zone": "Asia/Tokyo"}, "theirs.json"),
    }


def test_another_small_app_is_unknown(call: Call, theirs: dict[str, str]) -> None:
    before = _stored(call, theirs)

    answers = {
        command: call("--app", "shop", *command.format(**theirs).split()) for command in BY_ID
    }

    told = {
        command: one
        for command, one in answers.items()
        if (one.code, one.out) != (2, "") or "secret plan" in one.err
    }
    assert told == {}
    assert _stored(call, theirs) == before


def test_without_app_an_id_is_found_in_the_whole_installation(call: Call, write: Write) -> None:
    call("app", "apply", write({"name": "shop"}, "shop.json"))
    document = write(make_document(name="team update"))
    uid = call("--app", "shop", "action", "add", document, "--json").json[0]["uid"]

    assert call("action", "show", uid, "--json").json["uid"] == str(UUID(uid))


def _stored(call: Call, theirs: dict[str, str]) -> tuple[str, str, str]:
    action = call("action", "show", theirs["uid"], "--json").json
    # Its next occurrence moves with the clock.
    kept = {key: action[key] for key in ("revision", "standing", "document", "operations")}
    operation = call("run", "show", theirs["id"], "--json").json
    app = call("app", "show", "default", "--json").json
    return json.dumps(kept), operation["state"], json.dumps([app["trusted"], app["document"]])


@pytest.mark.parametrize(
    ("source", "remedy"), table(__file__, "a_new_small_app_reaches_its_own_folder_alone")
)
def test_a_new_small_app_reaches_its_own_folder_alone(
    call: Call, write: Write, source: dict[str, Any], remedy: str
) -> None:
    domain = {"source": source, **({"format": "csv"} if "url" in source else {})}

    done = call("app", "apply", write({"name": "shop", "domains": {"a": domain}}, "shop.json"))

    assert done.code == 2
    assert remedy in done.err
    assert call("app", "show", "shop").code == 2
