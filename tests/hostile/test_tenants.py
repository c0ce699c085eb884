"""Trust is asked about when an operation runs, whatever its stored documents say."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

import minutebook
from data.settings import Settings
from minutebook.steps import StepResult
from models.store import tenants
from models.store.tenants import storing
from models.tables import notices
from models.tenant.document import parse_small_app
from models.trust import RESTRICTED
from runtime.database import reading
from runtime.sections import AlertSettings, SecretSettings
from scheduler.changes.change import create_all
from tasks.execute import run_attempt
from tasks.notices import deliver
from tasks.registry import Registry
from tests.factories import author, make_document, make_operation, row_of
from tests.integration.tasks.crew import NOON, only_notice


def ended(
    engine: sa.Engine, settings: Settings, operations: dict[str, Any], **changes: Any
) -> dict[str, Any]:
    """Save an action of a trusted app, restrict the app, and run it; return the operation's row."""
    registry = Registry()
    document = make_document(operations=operations, **changes)
    (action,) = create_all(engine, [document], author(registry.steps))
    id = make_operation(engine, action, NOON)
    with engine.begin() as connection:
        tenants.set_trust(connection, 1, RESTRICTED)
    run_attempt(engine, settings, registry, (id, 1), "tests")
    return row_of(engine, id)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ({"file": "theirs/salaries.csv"}, "outside the folder of this restricted small app"),
        ({"file": "default/link.csv"}, "outside"),
        ({"sql": "SELECT 1 AS a", "connection": "theirs"}, "app add default --trusted"),
        ({"reader": "theirs"}, "app add default --trusted"),
        ({"url": "env:THEIR_URL"}, "app add default --trusted"),
        ({"url": "http://127.0.0.1:1/a.csv"}, "leads to a private address"),
    ],
    ids=["file", "link", "connection", "reader", "secret", "private_address"],
)
def test_a_source_beyond_a_restricted_app_is_not_read(
    engine: sa.Engine,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    source: dict[str, str],
    error: str,
) -> None:
    monkeypatch.setenv("THEIR_URL", "http://127.0.0.1:1/a.csv")
    settings = settings.model_copy(
        update={
            "connections": {"theirs": SecretStr("sqlite:////nowhere")},
            "fetch": settings.fetch.model_copy(update={"allow_private": True}),
        }
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
    for folder in ("default", "theirs"):
        (root / folder).mkdir(parents=True)
    (root / "theirs" / "salaries.csv").write_text("salary\n7777\n")
    (root / "default" / "link.csv").symlink_to(root / "theirs" / "salaries.csv")


def test_a_step_of_users_does_not_run_for_a_restricted_app(
    own_steps: None, engine: sa.Engine, settings: Settings
) -> None:
    ran = []

    @minutebook.step("theirs")
    def step(_: minutebook.StepContext) -> StepResult:
        ran.append(1)
        return StepResult()

    row = ended(engine, settings, {"theirs": True})

    assert (row["state"], ran) == ("failed", [])
    assert "app add" in row["error"]


@pytest.mark.parametrize(
    ("hook", "becomes", "error"),
    [
        ("env:THEIR_HOOK", "put off", "env:THEIR_HOOK is not allowed"),
        ("env:CHAT_HOOK", "put off", "env:CHAT_HOOK is not allowed"),
        ("http://127.0.0.1:1/", "failed", "leads to a private address"),
    ],
    ids=["secret", "of_the_installation", "private_address"],
)
def test_a_webhook_beyond_a_restricted_app_is_not_called(
    engine: sa.Engine,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    hook: str,
    becomes: str,
    error: str,
) -> None:
    for name in ("THEIR_HOOK", "CHAT_HOOK"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/7777")
    changes = {
        "alert": AlertSettings(webhook=SecretStr("env:CHAT_HOOK")),
        "hook": settings.hook.model_copy(update={"allow_private": True}),
        "secrets": SecretSettings(env=("*",)),
    }
    settings = settings.model_copy(update=changes)

    ended(engine, settings, MAINTENANCE, hooks={"on_success": [{"webhook": hook}]})
    owed = only_notice(engine)

    assert deliver(engine, settings, (owed["id"], 1)) == becomes
    assert error in only_notice(engine)["error"]


def test_mail_of_a_hook_stays_below_the_ceiling(engine: sa.Engine, settings: Settings) -> None:
    limits = settings.limits.model_copy(update={"mails": 1})
    settings = settings.model_copy(update={"limits": limits})
    hooks = {"on_success": [{"mail": "ann@example.com"}, {"mail": "ben@example.com"}]}
    ended(engine, settings, MAINTENANCE, hooks=hooks)
    with reading(engine) as connection:
        ids = connection.execute(sa.select(notices.c.id)).scalars().all()

    assert [deliver(engine, settings, (id, 1)) for id in ids] == ["done", "put off"]


MAINTENANCE = {"maintenance": True}
