"""What was granted is checked when an operation runs, whatever its stored documents say."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

import minutebook
from minutebook.grants import Grants
from minutebook.steps import StepResult
from models.store import tenants
from models.store.tenants import storing
from models.tables import notices
from models.tenant.document import parse_small_app
from runtime.config import Settings
from runtime.database import reading
from runtime.sections import AlertSettings
from scheduler.changes.change import create_all
from tasks.execute import run_attempt
from tasks.notices import deliver
from tasks.registry import Registry
from tests.factories import author, make_document, make_operation, row_of
from tests.integration.tasks.test_notices import NOON
from tests.integration.tasks.test_secret_hooks import only_notice

OTHERS = Grants(
    files=("mine/",), connections=("own",), readers=("own",), env=("MINE_*",),
    mail=("*@mine.example",), tasks=("mine.*",), steps=("mine",),
)  # fmt: skip


def ended(
    engine: sa.Engine, settings: Settings, operations: dict[str, Any], **changes: Any
) -> dict[str, Any]:
    """Save an action while all is granted, grant less, and run it; return the operation's row."""
    registry = Registry()
    document = make_document(operations=operations, **changes)
    (action,) = create_all(engine, [document], author(registry.steps))
    id = make_operation(engine, action, NOON)
    with engine.begin() as connection:
        tenants.set_grants(connection, 1, OTHERS)
    run_attempt(engine, settings, registry, (id, 1), "tests")
    return row_of(engine, id)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ({"file": "theirs/salaries.csv"}, "--files theirs/salaries.csv"),
        ({"file": "mine/link.csv"}, "outside"),
        ({"sql": "SELECT 1 AS a", "connection": "theirs"}, "--connections theirs"),
        ({"reader": "theirs"}, "--readers theirs"),
        ({"url": "env:THEIR_URL"}, "--env THEIR_URL"),
    ],
    ids=["file", "link", "connection", "reader", "secret"],
)
def test_a_source_that_is_not_granted_is_not_read(
    engine: sa.Engine,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    source: dict[str, str],
    error: str,
) -> None:
    monkeypatch.setenv("THEIR_URL", "http://127.0.0.1:1/a.csv")
    settings = settings.model_copy(
        update={"connections": {"theirs": SecretStr("sqlite:////nowhere")}}
    )
    _write_files(settings.effective_data_root)
    domain = {"source": source, **({"format": "csv"} if "url" in source else {})}
    with engine.begin() as connection:
        storing.apply(connection, parse_small_app({"name": "default", "domains": {"a": domain}}))

    row = ended(engine, settings, {"refresh": True})

    assert row["state"] == "failed"
    assert error in row["error"]
    assert "7777" not in str(row)


def _write_files(root: Path) -> None:
    for folder in ("mine", "theirs"):
        (root / folder).mkdir(parents=True)
    (root / "theirs" / "salaries.csv").write_text("salary\n7777\n")
    (root / "mine" / "link.csv").symlink_to(root / "theirs" / "salaries.csv")


def test_a_step_that_is_not_granted_does_not_run(
    own_steps: None, engine: sa.Engine, settings: Settings
) -> None:
    ran = []

    @minutebook.step("theirs")
    def step(_: minutebook.StepContext) -> StepResult:
        ran.append(1)
        return StepResult()

    row = ended(engine, settings, {"theirs": True})

    assert (row["state"], ran) == ("failed", [])
    assert "--steps theirs" in row["error"]


def test_a_webhook_behind_a_secret_that_is_not_granted_is_not_called(
    own_steps: None, engine: sa.Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_HOOK", "http://127.0.0.1:1/7777")

    @minutebook.step("mine")
    def step(_: minutebook.StepContext) -> StepResult:
        return StepResult()

    hooks = {"on_success": [{"webhook": "env:THEIR_HOOK"}]}
    ended(engine, settings, {"mine": True}, hooks=hooks)
    owed = only_notice(engine)

    assert deliver(engine, settings, (owed["id"], 1)) == "put off"
    assert "--env THEIR_HOOK" in only_notice(engine)["error"]


def test_the_installation_s_own_receiver_is_not_lent_to_a_hook(
    own_steps: None, engine: sa.Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAT_HOOK", "http://127.0.0.1:1/7777")
    alert = AlertSettings(webhook=SecretStr("env:CHAT_HOOK"), mail=("admin@here.example",))
    settings = settings.model_copy(update={"alert": alert})

    @minutebook.step("mine")
    def step(_: minutebook.StepContext) -> StepResult:
        return StepResult()

    hooks = {"on_success": [{"webhook": "env:CHAT_HOOK"}, {"mail": "admin@here.example"}]}
    ended(engine, settings, {"mine": True}, hooks=hooks)
    with reading(engine) as connection:
        owed = connection.execute(sa.select(notices)).mappings().all()
    for one in owed:
        deliver(engine, settings, (one["id"], 1))

    with reading(engine) as connection:
        errors = sorted(connection.execute(sa.select(notices.c.error)).scalars())
    assert len(errors) == 2
    assert "--mail admin@here.example" in errors[0]
    assert "--env CHAT_HOOK" in errors[1]


def test_mail_of_a_hook_goes_to_granted_addresses_alone(
    own_steps: None, engine: sa.Engine, settings: Settings
) -> None:
    @minutebook.step("mine")
    def step(_: minutebook.StepContext) -> StepResult:
        return StepResult()

    hooks = {"on_success": [{"mail": "ann@theirs.example"}]}
    ended(engine, settings, {"mine": True}, hooks=hooks)
    owed = only_notice(engine)

    assert deliver(engine, settings, (owed["id"], 1)) == "failed"
    assert "--mail ann@theirs.example" in only_notice(engine)["error"]
    assert not (settings.home / "mail").exists()
