"""A webhook whose URL is a secret: it is told, and the secret is nowhere on record."""

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from cli.main import run
from models.tables import metadata, notices
from runtime.database import reading
from tasks.notices.webhook import secrets_of, signature
from tests.integration.tasks.crew import Crew
from tests.receiver import Receiver
from tests.servers import free_port
from tests.transactions import execute

TOKEN = "T0PS3CR3Tpath"


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
        assert TOKEN.lower() not in where.lower()


@pytest.mark.parametrize(("answer", "end"), [(200, "done"), (404, "failed"), (503, "put off")])
def test_the_url_that_a_variable_holds_is_told_and_kept_nowhere(
    crew: Crew,
    web: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    answer: int,
    end: str,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("CHAT_HOOK", f"{web.url}/{TOKEN}?key={TOKEN}")
    monkeypatch.setenv("SCHED_DATABASE_URL", crew.environ["SCHED_DATABASE_URL"])
    web.answers = [answer]
    crew.owe("env:CHAT_HOOK")

    assert crew.deliver() == [end]

    (got,), (row,) = web.got, crew.rows()
    assert got.path == f"/{TOKEN}?key={TOKEN}"
    assert TOKEN not in got.body.decode()
    assert row["target"] == {"kind": "webhook", "to": "env:CHAT_HOOK"}
    at_home = ("--home", str(crew.settings.home), "--json")
    assert [run([*at_home, "status"]), run([*at_home, "action", "show", "every minute"])] == [0, 0]
    assert_nowhere(crew.engine, caplog, "".join(capsys.readouterr()))


@pytest.mark.parametrize(
    ("content", "end", "error"),
    [
        pytest.param(f"no-url-{TOKEN}", "failed", "holds no http or https URL", id="no_url"),
        pytest.param(f"http://{TOKEN}.invalid/in", "put off", "cannot be found", id="unknown_host"),
        pytest.param(
            f"http://u:{TOKEN}@127.0.0.1:NOBODY/in", "put off", "refused", id="nobody_listens"
        ),
    ],
)
def test_no_error_holds_a_part_of_the_secret(
    crew: Crew,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    content: str,
    end: str,
    error: str,
) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "hook").write_text(content.replace("NOBODY", str(free_port())))
    crew.owe(f"file:{tmp_path / 'hook'}")

    assert crew.deliver() == [end]
    assert error in crew.error_told()
    assert_nowhere(crew.engine, caplog, "")


def test_a_private_address_is_refused_without_being_named(
    crew: Crew, web: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAT_HOOK", f"{web.url}/{TOKEN}")
    crew.sets(SCHED_HOOK_ALLOW_PRIVATE="")
    crew.owe("env:CHAT_HOOK")

    assert (crew.deliver(), web.got) == (["failed"], [])
    assert "SCHED_HOOK_ALLOW_PRIVATE=true allows that" in crew.error_told()
    assert "127.0.0.1" not in crew.error_told()


def test_the_signing_secret_may_be_referred_to(crew: Crew, web: Receiver, tmp_path: Path) -> None:
    (tmp_path / "sign").write_text("s3cret\n")
    crew.sets(SCHED_HOOK_SECRET=f"file:{tmp_path / 'sign'}")
    crew.owe(web.url)

    assert crew.deliver() == ["done"]

    signed = web.got[0].headers["Minutebook-Signature"]
    now = datetime.fromtimestamp(int(signed.split(",")[0].removeprefix("t=")), UTC)
    resolved = crew.settings.hook.model_copy(update={"secret": SecretStr("s3cret")})
    its = (secrets_of(resolved, "default"), "default", web.url, web.got[0].body, now)
    assert signature(*its) == signed
    # As after a worker that died.
    execute(crew.engine, sa.update(notices).values(state="owed", finished_at=None))
    (tmp_path / "sign").unlink()
    assert crew.deliver() == ["put off"]
    assert crew.error_told().startswith("SCHED_HOOK_SECRET: file:")
