"""Hooks whose URL is a secret, which is nowhere on record, and pings, which have no body."""

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from cli.main import run
from models.action.allowed import problems_of_hooks
from models.action.hooks import HooksModel
from models.tables import metadata, notices
from models.trust import RESTRICTED
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


ALL = ["start", "success", "failure"]
OVER = "over before it could be delivered"


def pinged(crew: Crew, *pings: dict[str, Any], **changes: Any) -> Any:
    """Store an action that pings; its starts are delivered while its step runs."""
    crew.during = crew.deliver
    return crew.make(hooks={"ping": list(pings)}, **changes)


def test_each_moment_has_its_url_and_no_body(crew: Crew, web: Receiver) -> None:
    action = pinged(
        crew,
        {"url": f"{web.url}/start", "at": ["start"]},
        {"url": f"{web.url}/check?a=1", "method": "POST"},
        {"url": f"{web.url}/fail", "at": ["failure"]},
    )

    for end in ("success", "failed", "partial"):
        crew.run(action, end)
        crew.deliver()

    assert [(got.method, got.path) for got in web.got] == [
        ("GET", "/start"), ("POST", "/check?a=1"),
        ("GET", "/start"), ("GET", "/fail"),
        ("GET", "/start"), ("GET", "/fail"),
    ]  # fmt: skip
    assert {got.body for got in web.got} == {b""}
    assert [got.headers.get("Content-Length") for got in web.got][:2] == [None, "0"]
    assert not [got for got in web.got if "Content-Type" in got.headers]


def test_a_run_that_is_retried_starts_once_and_fails_once(crew: Crew, web: Receiver) -> None:
    crew.error = "source is away"
    retry = {"retry": {"max_attempts": 2}}

    assert crew.ends(pinged(crew, {"url": web.url, "at": ALL}, policy=retry), 1, 2)[1] == "failed"
    assert [told for told, *_ in crew.states()] == ["start", "failure"]


def test_a_start_that_is_late_is_not_sent_after_the_end(crew: Crew, web: Receiver) -> None:
    crew.run(crew.make(hooks={"ping": [{"url": web.url, "at": ALL}]}))

    assert set(crew.states()) == {("start", "done", OVER), ("success", "owed", None)}


@pytest.mark.parametrize(("status", "outcome"), [(302, "put off"), (404, "failed")])
def test_what_a_monitor_did_not_take_shows_no_secret(
    crew: Crew, web: Receiver, status: int, outcome: str
) -> None:
    web.answers, web.headers = [status], {"Location": f"{web.url}/elsewhere"}
    crew.run(pinged(crew, {"url": f"{web.url}/s3cret"}))

    assert crew.deliver() == [outcome]
    assert [got.path for got in web.got] == ["/s3cret"]
    assert "s3cret" not in crew.error_told()


def test_a_restricted_app_pings_public_addresses_alone(crew: Crew, web: Receiver) -> None:
    crew.run(pinged(crew, {"url": web.url}))
    execute(crew.engine, sa.text("""UPDATE small_apps SET trust = '{}'"""))

    assert (crew.deliver(), web.got) == (["failed"], [])
    secret = HooksModel.model_validate({"ping": [{"url": "env:CHECK_URL"}]})
    (problem,) = problems_of_hooks(secret, RESTRICTED, None)
    assert problem.path == "hooks.ping[0].url"
