"""Every command shows one view: as JSON that its schema describes, and as harmless text."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from jsonschema import Draft202012Validator

from cli.tree import COMMANDS, Tree
from data.services.summary import SummaryPreview
from data.services.templates import TemplatePreview, Templates, TriedMail
from interop.services.exports import Export
from interop.services.imports import Import
from models.tables import operation_logs, operations
from runtime.config import load_settings
from runtime.database import make_engine
from runtime.visible import visible_line
from services.actions import Actions
from services.apps import App, Apps, app_view
from services.apps.changes import AppliedApps, DeletedApp
from services.apps.trust import HookSecret, TrustInApp
from services.backfills import BackfillPlan, CancelledBackfills, StartedBackfill
from services.changes.result import Change, Changes
from services.channels import Channels
from services.doctor.report import Report
from services.explanation import Explanation
from services.installation import Migrated, Started, StoppedUp
from services.jobs import AddedJob, DeletedJob, ImportedJobs, Jobs
from services.operations import Log, Operation, Operations
from services.runs import Ran, RanAll, RunPlan
from services.runs.many import Bulk
from services.simulation import Simulation
from services.status import Status
from services.status.pauses import PauseChange, Pauses, Queues
from services.steps import Steps
from services.tokens import NewToken, RevokedToken, Tokens
from services.tokens.sessions import NewLink
from services.upcoming import Action, Occurrences
from services.users import AddedUser, DeletedUser, ImportedUsers, User, Users
from services.users.events import SentEvent
from services.view import Listing, View
from tests.factories import make_document
from tests.integration.cli.conftest import Call, Write

Kind = type[View] | type[Listing[Any]]
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
WITHOUT_VIEW = {
    # It needs a service: test_channels.py.
    "notify test",
    "up",
    "daemon",
    "worker",
    "web",
    "action edit",
    "app data",
    "run watch",
}
# No daemon ticks here; one of all actions is active already.
ENDS_WITH_1: dict[Kind, int] = {Report: 1, RanAll: 1}
BACKFILL = ("backfill", "nightly", "--from", "{hour}", "--to", "{hour}")
CASES: list[tuple[str, tuple[str, ...], Kind]] = [
    ("action check", ("{new}",), Changes),
    ("action add", ("{new}",), Changes),
    ("action apply", ("{new}",), Changes),
    ("action apply", ("{new}", "--dry-run"), Changes),
    ("action rename", ("nightly", "by night"), Change),
    ("action list", (), Actions),
    ("action show", ("nightly",), Action),
    ("action next", ("nightly",), Occurrences),
    ("action explain", ("nightly", "2099-01-05T07:00:00Z"), Explanation),
    ("action run", ("other",), Ran),
    ("action run", ("--all",), RanAll),
    ("action run", ("nightly", "--dry-run"), RunPlan),
    ("action pause", ("nightly",), Change),
    ("action pause", ("--owner", "shop"), Changes),
    ("action resume", ("nightly",), Change),
    ("action delete", ("nightly",), Change),
    ("action delete", ("--owner", "shop"), Changes),
    ("run list", (), Operations),
    ("run show", ("{id}",), Operation),
    ("run logs", ("{id}",), Log),
    ("run retry", ("{missed}",), Bulk),
    ("run retry", ("{failed}",), Bulk),
    ("run retry", ("--state", "failed", "--dry-run"), Bulk),
    ("run cancel", ("{id}",), Bulk),
    ("queue list", (), Queues),
    ("app apply", ("{app}",), AppliedApps),
    ("pause", (), Pauses),
    ("pause", ("--all", "--until", "PT30M"), PauseChange),
    ("resume", ("--all",), PauseChange),
    ("app hook-secret", ("default",), HookSecret),
    ("app add", ("shop", "--tasks", "shop.*"), TrustInApp),
    ("app list", (), Apps),
    ("app show", ("default",), App),
    ("app delete", ("shop", "--force"), DeletedApp),
    ("template list", (), Templates),
    ("template preview", ("hello",), TemplatePreview),
    ("template summary", (), SummaryPreview),
    ("template send-test", ("hello", "--to", "ann@example.com"), TriedMail),
    ("user add", ("zoe@example.com",), AddedUser),
    ("user show", ("ann@example.com",), User),
    ("user update", ("ann@example.com", "--name", "Ann"), User),
    ("user delete", ("ann@example.com",), DeletedUser),
    ("user list", (), Users),
    ("user import", ("{users}",), ImportedUsers),
    ("event send", ("order.paid", "--user", "ann@example.com"), SentEvent),
    ("step list", (), Steps),
    ("token create", ("--role", "viewer"), NewToken),
    ("token link", ("--role", "editor"), NewLink),
    ("token list", (), Tokens),
    ("notify list", (), Channels),
    ("token rotate", ("{token}", "--grace", "PT1H"), NewToken),
    ("token revoke", ("{token}",), RevokedToken),
    ("job add", ("--url", "https://example.com/a"), AddedJob),
    ("job import", ("--file", "{jobs}"), ImportedJobs),
    ("job list", (), Jobs),
    ("job delete", ("{job}",), DeletedJob),
    ("backfill", (*BACKFILL[1:], "--dry-run"), BackfillPlan),
    ("backfill", BACKFILL[1:], StartedBackfill),
    ("backfill", ("filled", "--cancel"), CancelledBackfills),
    ("import beat", ("{beat}",), Import),
    ("import crontab", ("{crontab}",), Import),
    ("import apscheduler", ("{apscheduler}",), Import),
    ("import jobs", ("{jobs}",), Import),
    ("export", ("--owner", "shop"), Export),
    ("init", (), Started),
    ("down", (), StoppedUp),
    ("migrate", (), Migrated),
    ("status", (), Status),
    ("simulate", ("{new}",), Simulation),
    ("doctor", (), Report),
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Where the first test keeps its filled database for the others, and the ids in it."""
    return tmp_path_factory.mktemp("filled") / "filled.db", {}


@pytest.fixture
def filled(
    call: Call,
    write: Write,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    stored: tuple[Path, dict[str, str]],
) -> Callable[[str], str]:
    """Fill an installation with one of each, hostile texts among them; return what fills in."""
    monkeypatch.setenv("SCHED_HOOK_SECRET", "s3cret")
    monkeypatch.chdir(home.parent)
    database, ids = stored
    if ids:
        shutil.copy(database, home / "minutebook.db")
    else:
        ids |= _fill(call, write, home)
        with sqlite3.connect(home / "minutebook.db") as connection:
            connection.execute("VACUUM INTO ?", [str(database)])
        connection.close()
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


def _fill(call: Call, write: Write, home: Path) -> dict[str, str]:
    """Fill the database of a home folder; return the ids in it."""
    whole = {
        "name": "default",
        "templates": {"hello": {"subject": "Hi", "text": "Hello {{ recipient.name }}"}},
    }
    call("app", "apply", write(whole, "default.json"))
    call("user", "add", "ann@example.com", "--group", "staff")
    call("app", "apply", write({"name": "shop"}, "shop.json"))
    documents = [
        make_document(name=name, owner="shop", when=HOURLY)
        for name in ("nightly", "other", "filled")
    ]
    call("action", "add", write(documents, "all.json"))
    engine = make_engine(load_settings(home, {}))
    with engine.connect() as connection:
        hour = connection.execute(
            sa.text("SELECT strftime('%Y-%m-%dT%H:00:00Z', 'now', '-3 hours')")
        ).scalar_one()
    call("backfill", "filled", "--from", hour, "--to", hour)
    pending = call("action", "run", "nightly", "--json").json["id"]
    ended = _ended(engine, UUID(pending))
    engine.dispose()
    return {
        **ended,
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


@pytest.mark.parametrize(
    ("command", "arguments", "kind"), CASES, ids=[f"{one[0]}-{one[2].__name__}" for one in CASES]
)
def test_a_command_shows_its_view(
    call: Call,
    filled: Callable[[str], str],
    command: str,
    arguments: tuple[str, ...],
    kind: Kind,
) -> None:
    shown = call("--json", *command.split(), *map(filled, arguments))

    kind = app_view() if kind is App else kind
    schema = kind.model_json_schema(mode="serialization", by_alias=True)
    assert shown.code == ENDS_WITH_1.get(kind, 0), shown.err
    Draft202012Validator(schema).validate(shown.json)
    if issubclass(kind, View):
        assert set(shown.json) == set(schema["properties"])


def test_no_text_has_a_control_character(call: Call, filled: Callable[[str], str]) -> None:
    looks = [
        ("run list", ()),
        ("run show", ("{failed}",)),
        ("run logs", ("{id}",)),
        ("action show", ("nightly",)),
        ("action list", ()),
        ("app show", ("default",)),
        ("status", ()),
    ]

    texts = [call(*command.split(), *map(filled, rest)).out for command, rest in looks]
    written = call("--json", "run", "show", filled("{failed}"))

    assert not set("\x1b\x9b\u202e\x07") & set("".join(texts) + written.out)
    assert r"a\x1b[2J\x9b\u202e\x07" in texts[1]
    assert written.json["error"] == visible_line(HOSTILE)


def test_every_command_has_a_view() -> None:
    tree = Tree(name="minutebook")
    leaves = {
        f"{name} {leaf}" if leaf else name
        for name in COMMANDS
        for leaf in getattr(tree.get_command(None, name), "commands", {"": None})
    }

    assert leaves - WITHOUT_VIEW == {command for command, _, _ in CASES}
