"""Every command shows one view, as JSON that its schema describes."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from jsonschema import Draft202012Validator

from cli.tree import COMMANDS, Tree
from models.tables import operation_logs, operations
from services.apps import app_view
from services.view import Listing, View
from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write
from tests.tables import table
from tests.transactions import fetched

HOSTILE = "a\x1b[2J\x9b\u202e\x07"
HOURLY = {"cron_rule": "0 * * * *", "timezone": "UTC"}
APSCHEDULER = {"minutebook_apscheduler": 1, "apscheduler": "3.11.3", "jobs": []}
BEAT = {
    "minutebook_beat": 1,
    "celery": "5.7.0",
    "timezone": "UTC",
    "entries": [{"name": "it", "task": "shop.it", "schedule": {"every_s": 60}}],
}
# They stand up processes or an editor, hand out rows as they are or a script, or follow; `status
# --check` prints nothing.
WITHOUT_VIEW = {"up", "daemon", "worker", "web", "action edit", "app data", "run watch"}
# It needs a service: test_templates.py.
WITHOUT_VIEW |= {"notify test"}
# No daemon ticks here; one of all actions is active already.
ENDS_WITH_1 = {"Report", "RanAll"}
# Of each command with a view: its arguments, and the name of the view.
CASES = table(__file__, "views_of_commands")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Where the first test keeps its filled database for the others, and the ids in it."""
    return tmp_path_factory.mktemp("filled") / "filled.db", {}


@pytest.fixture
def filled(
    call: Call,
    write: Write,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    stored: sa.Engine,
    kept: tuple[Path, dict[str, str]],
) -> Callable[[str], str]:
    """Fill an installation with one of each, hostile texts among them; return what fills in."""
    monkeypatch.setenv("SCHED_HOOK_SECRET", "s3cret")
    monkeypatch.chdir(home.parent)
    database, ids = kept
    if ids:
        shutil.copy(database, home / "minutebook.db")
    else:
        ids |= _fill(call, write, stored)
        with closing(sqlite3.connect(home / "minutebook.db")) as connection:
            connection.execute("VACUUM INTO ?", [str(database)])
    (home / "crontab").write_text("15 2 * * * /srv/backup\n")
    found = {
        **ids,
        "new": write(make_document(name="new", when=HOURLY), "new.json"),
        "app": write({"name": "new-app"}, "app.json"),
        "users": write([{"id": "bob@example.com"}], "users.json"),
        "beat": write(BEAT, "beat.json"),
        "crontab": str(home / "crontab"),
        "apscheduler": write(APSCHEDULER, "apscheduler.json"),
        "jobs": write([{"url": "https://example.com/c"}], "jobs.json"),
    }
    return lambda text: text.format(**found)


def _fill(call: Call, write: Write, engine: sa.Engine) -> dict[str, str]:
    hello = {"subject": "Hi", "text": "Hello {{ recipient.name }}"}
    default = {"name": "default", "templates": {"hello": hello}}
    call("app", "apply", write(default, "default.json"))
    call("user", "add", "ann@example.com", "--group", "staff")
    call("app", "apply", write({"name": "shop"}, "shop.json"))
    documents = [
        make_document(name=name, owner="shop", when=HOURLY)
        for name in ("nightly", "other", "filled")
    ]
    call("action", "add", write(documents, "all.json"))
    three_hours_ago = "SELECT strftime('%Y-%m-%dT%H:00:00Z', 'now', '-3 hours')"
    hour = fetched(engine, sa.text(three_hours_ago)).scalar_one()
    call("backfill", "filled", "--from", hour, "--to", hour)
    pending = call("action", "run", "nightly", "--json").json["id"]
    return {
        **_ended(engine, UUID(pending)),
        "id": pending,
        "hour": hour,
        "token": call("token", "create", "--role", "viewer", "--json").json["id"],
        "job": call("job", "add", "--url", "https://example.com/b", "--json").json["id"],
    }


def _ended(engine: sa.Engine, pending: UUID) -> dict[str, str]:
    """Record operations that ended as a pending one did not, and its log; return their ids."""
    ids = {state: uuid4() for state in ("missed", "failed")}
    with engine.begin() as connection:
        mine = sa.select(operations).where(operations.c.id == pending)
        row = dict(connection.execute(mine).mappings().one())
        told = {"error": HOSTILE, "reason": HOSTILE, "finished_at": row["recorded_at"]}
        ended = [row | told | {"id": id, "state": state} for state, id in ids.items()]
        connection.execute(sa.insert(operations), ended)
        lines = [{"at": row["recorded_at"].isoformat(), "level": "INFO", "message": HOSTILE}]
        connection.execute(sa.insert(operation_logs).values(operation_id=pending, lines=lines))
    return {state: str(id) for state, id in ids.items()}


def kinds(base: type[Any]) -> dict[str, type[Any]]:
    """Return the views by their names; of those with one name, that which plug-ins add to."""
    found = {base.__name__: base}
    for one in base.__subclasses__():
        found |= kinds(one)
    return found


@pytest.mark.parametrize(("command", "arguments", "name"), CASES)
def test_a_command_shows_its_view(
    call: Call, filled: Callable[[str], str], command: str, arguments: list[str], name: str
) -> None:
    shown = call("--json", *command.split(), *map(filled, arguments))

    # What plug-ins add to the view of an app is made at the first call, else by a server.
    app_view()
    kind = (kinds(View) | kinds(Listing))[name]
    schema = kind.model_json_schema(mode="serialization", by_alias=True)
    assert shown.code == int(name in ENDS_WITH_1), shown.err
    Draft202012Validator(schema).validate(shown.json)
    if issubclass(kind, View):
        assert set(shown.json) == set(schema["properties"])


def test_every_command_has_a_view() -> None:
    tree = Tree(name="minutebook")
    leaves = {
        f"{name} {leaf}" if leaf else name
        for name in COMMANDS
        for leaf in getattr(tree.get_command(None, name), "commands", {"": None})
    }

    assert leaves - WITHOUT_VIEW == {str(case.values[0]) for case in CASES}
