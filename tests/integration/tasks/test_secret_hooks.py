"""A webhook whose URL is a secret: it is told, and the secret is nowhere on record."""

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

import minutebook
from cli.main import run
from minutebook.steps import StepResult
from models.tables import metadata, notices
from runtime.config import Settings, load_settings
from runtime.database import reading
from scheduler.changes.change import create_all
from tasks.execute import run_attempt
from tasks.notices import deliver
from tasks.notices.webhook import secrets_of, signature
from tasks.registry import Registry
from tests.factories import author, make_document, make_operation
from tests.integration.tasks.test_notices import NOON
from tests.receiver import Receiver, receiver
from tests.servers import free_port

TOKEN = "T0PS3CR3Tpath"


@pytest.fixture
def web(own_steps: None) -> Iterator[Receiver]:
    with receiver() as server:
        yield server


def set_up(settings: Settings, **environ: str) -> Settings:
    own = {
        "SCHED_DATABASE_URL": settings.database_url.get_secret_value(),
        "SCHED_BROKER_URL": settings.broker_url.get_secret_value(),
        "SCHED_HOOK_ALLOW_PRIVATE": "true",
        "SCHED_SECRETS_ENV": "*",
        "SCHED_SECRETS_FOLDER": "/",
        **environ,
    }
    return load_settings(settings.home, {key: value for key, value in own.items() if value})


def told(engine: sa.Engine, settings: Settings, webhook: str) -> tuple[str, sa.RowMapping]:
    """Run an action with that hook, deliver what it owes; return the end and the notice."""

    @minutebook.step("told")
    def step(_: minutebook.StepContext) -> StepResult:
        return StepResult("done")

    registry = Registry()
    document = make_document(
        operations={"told": True}, hooks={"on_success": [{"webhook": webhook}]}
    )
    (action,) = create_all(engine, [document], author(registry.steps))
    id = make_operation(engine, action, NOON)
    assert run_attempt(engine, settings, registry, (id, 1), "tests") == "success"
    row = only_notice(engine)
    return deliver(engine, settings, (row["id"], 1)), only_notice(engine)


def only_notice(engine: sa.Engine) -> sa.RowMapping:
    with reading(engine) as connection:
        return connection.execute(sa.select(notices)).mappings().one()


def everything_stored(engine: sa.Engine) -> str:
    with reading(engine) as connection:
        return "\n".join(
            json.dumps(dict(row), default=str)
            for table in metadata.sorted_tables
            for row in connection.execute(sa.select(table)).mappings()
        )


def assert_nowhere(engine: sa.Engine, caplog: pytest.LogCaptureFixture, printed: str) -> None:
    logged = "\n".join(caplog.handler.format(record) for record in caplog.records)
    for where in (everything_stored(engine), logged, printed):
        assert TOKEN not in where


@pytest.mark.parametrize("answer", [200, 404, 503])
def test_the_url_that_a_variable_holds_is_told_and_kept_nowhere(
    engine: sa.Engine,
    settings: Settings,
    web: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    answer: int,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("CHAT_HOOK", f"{web.url}/{TOKEN}?key={TOKEN}")
    web.answers = [answer]

    end, row = told(engine, set_up(settings), "env:CHAT_HOOK")

    assert (end, web.got[0].path) == (
        {200: "done", 404: "failed", 503: "put off"}[answer],
        f"/{TOKEN}?key={TOKEN}",
    )
    assert row["target"] == {"kind": "webhook", "to": "env:CHAT_HOOK"}
    monkeypatch.setenv("SCHED_DATABASE_URL", settings.database_url.get_secret_value())
    at_home = ("--home", str(settings.home), "--json")
    assert [run([*at_home, "status"]), run([*at_home, "action", "show", "every minute"])] == [0, 0]
    assert_nowhere(engine, caplog, "".join(capsys.readouterr()))
    assert TOKEN not in json.dumps(json.loads(web.got[0].body))


@pytest.mark.parametrize(
    ("content", "end", "error"),
    [
        pytest.param(f"no-url-{TOKEN}", "failed", "holds no http or https URL", id="no_url"),
        pytest.param(f"https://[{TOKEN}/in", "failed", "holds no http or https URL", id="broken"),
        pytest.param(f"http://{TOKEN}.invalid/in", "put off", "cannot be found", id="unknown_host"),
        pytest.param(
            f"http://{'a' * 70}{TOKEN}.example/in", "put off", "cannot be found", id="long_host"
        ),
        pytest.param(
            f"http://u:{TOKEN}@127.0.0.1:NOBODY/in", "put off", "refused", id="nobody_listens"
        ),
    ],
)
def test_no_error_holds_a_part_of_the_secret(
    engine: sa.Engine,
    settings: Settings,
    web: Receiver,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    content: str,
    end: str,
    error: str,
) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "hook").write_text(content.replace("NOBODY", str(free_port())))

    ended, row = told(engine, set_up(settings), f"file:{tmp_path / 'hook'}")

    assert ended == end
    assert error in row["error"]
    assert_nowhere(engine, caplog, "")
    assert TOKEN.lower() not in everything_stored(engine).lower()


def test_a_private_address_is_refused_without_being_named(
    engine: sa.Engine, settings: Settings, web: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAT_HOOK", f"{web.url}/{TOKEN}")

    end, row = told(engine, set_up(settings, SCHED_HOOK_ALLOW_PRIVATE=""), "env:CHAT_HOOK")

    assert (end, web.got) == ("failed", [])
    assert "SCHED_HOOK_ALLOW_PRIVATE" in row["error"]
    assert "127.0.0.1" not in row["error"]


def test_a_variable_that_comes_later_is_read_at_the_next_try(
    engine: sa.Engine, settings: Settings, web: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHAT_HOOK", raising=False)
    end, row = told(engine, set_up(settings), "env:CHAT_HOOK")
    assert (end, row["error"]) == (
        "put off",
        "env:CHAT_HOOK is not set; set the variable CHAT_HOOK for this worker",
    )

    monkeypatch.setenv("CHAT_HOOK", web.url)

    assert deliver(engine, set_up(settings), (row["id"], 2)) == "done"


def test_the_signing_secret_may_be_referred_to(
    engine: sa.Engine, settings: Settings, web: Receiver, tmp_path: Path
) -> None:
    (tmp_path / "sign").write_text("s3cret\n")
    own = set_up(settings, SCHED_HOOK_SECRET=f"file:{tmp_path / 'sign'}")

    assert told(engine, own, web.url)[0] == "done"

    signed: dict[str, Any] = web.got[0].headers
    at, hexed = (part.split("=")[1] for part in signed["Minutebook-Signature"].split(","))
    secrets = secrets_of(own.hook.model_copy(update={"secret": SecretStr("s3cret")}), "default")
    now = datetime.fromtimestamp(int(at), UTC)
    expected = signature(secrets, "default", web.url, web.got[0].body, now)
    assert expected == f"t={at},v1={hexed}"
    (tmp_path / "sign").unlink()
    unsigned = told_again(engine, own)
    assert unsigned.startswith("SCHED_HOOK_SECRET: file:")


def told_again(engine: sa.Engine, settings: Settings) -> str:
    """Try the same notice once more, as after a worker that died; return its error."""
    with engine.begin() as connection:
        connection.execute(sa.update(notices).values(state="owed", finished_at=None))
    assert deliver(engine, settings, (only_notice(engine)["id"], 2)) == "put off"
    return str(only_notice(engine)["error"])


def test_alerts_may_go_to_a_reference(settings: Settings) -> None:
    own = set_up(settings, SCHED_ALERT_WEBHOOK="env:CHAT_HOOK")

    assert own.alert.webhook.get_secret_value() == "env:CHAT_HOOK"
