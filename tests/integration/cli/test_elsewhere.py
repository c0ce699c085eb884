"""`minutebook --url …`: a server elsewhere, and what goes wrong on the way to it."""

import json
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from cli.main import run
from cli.remote.opening import is_exposed, server_of
from cli.remote.requests import request_of
from cli.remote.server import Remote
from cli.tree import hoisted
from models.errors import InvalidDocument, Refused
from models.roles import Role
from services import tokens
from services.installation import Installation
from services.verbs import VERBS
from tests.certificate import make_certificate, tls_of_server
from tests.docs.test_reference import operations
from tests.integration.cli.conftest import Call, Write
from tests.receiver import receiver
from tests.servers import free_port
from tests.tables import table
from tests.web_server import serving
from web import verbs
from web.app import make_app

TOKEN = "mbt_of-tests"
# What stands up processes, or looks at this machine alone.
ONLY_HERE = [
    ("init",),
    ("web",),
    ("simulate", "x.json"),
    ("status", "--check", "daemon"),
    ("app", "hook-secret", "default"),
    ("token", "link"),
]


@pytest.fixture
def ask(ask: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call `minutebook` with a token of the environment, where no installation is."""
    monkeypatch.setenv("SCHED_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("SCHED_TOKEN", TOKEN)
    return ask


@contextmanager
def answering(
    status: int, headers: dict[str, str], body: bytes, tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Answer each request alike; yield the address."""
    with receiver(tls) as server:
        server.answers, server.headers, server.body = [status] * 9, headers, body
        yield server.url


# Those whose endpoint does more than call them; test_each_verb.py has the others.
OF_THEIR_OWN = [one for one in VERBS if one in verbs._OWN]


@pytest.mark.parametrize("function", OF_THEIR_OWN, ids=lambda one: VERBS[one].name)
def test_an_endpoint_of_its_own_takes_what_is_sent(function: Callable[..., Any]) -> None:
    verb = VERBS[function]
    parameters = list(function.__annotations__)[1:-1]
    if "asked" in parameters:
        fields = function.__annotations__["asked"].model_fields
        parameters = [one for one in parameters if one != "asked"] + list(fields)
    request = request_of(function, dict.fromkeys(parameters, "x"), "x")
    operation = operations()[f"{verb.method} {verb.path}"]

    assert request.path == re.sub(r"{\w+}", "x", verb.path)
    taken = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    assert {name for name, _ in request.params} <= taken
    assert ("requestBody" in operation) is (request.content is not None)


@pytest.mark.parametrize("command", ONLY_HERE, ids=" ".join)
def test_a_command_of_the_machine_itself_refuses(ask: Call, command: tuple[str, ...]) -> None:
    refused = ask("--url", "http://127.0.0.1:9", *command)

    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        "error: this command works only on the machine itself; leave out --url, or unset"
        " SCHED_URL\n"
    )


# What goes wrong


def test_a_server_that_is_away_is_one_line(ask: Call) -> None:
    url = f"http://127.0.0.1:{free_port()}"

    failed = ask("--url", url, "action", "list")

    assert failed.code == 1
    assert failed.err == f"error: {url} does not answer: [Errno 111] Connection refused\n"


@pytest.mark.parametrize(
    ("status", "headers", "body", "code", "told"), table(__file__, "answers_that_are_none")
)
def test_an_answer_that_is_none_is_one_line(
    ask: Call, status: int, headers: dict[str, str], body: str, code: int, told: str
) -> None:
    with answering(status, headers, body.encode()) as url:
        failed = ask("--url", url, "action", "list")

    assert failed.code == code
    assert told in failed.err
    assert (failed.out, len(failed.err.splitlines())) == ("", 1)


def test_rows_that_are_none_are_one_line(ask: Call) -> None:
    with answering(200, {}, b'{"a": 1}\n[]\n') as url:
        failed = ask("--url", url, "--app", "shop", "app", "data", "shop", "sales")

    assert (failed.code, failed.out) == (1, '{"a": 1}\n')
    assert "is not an answer of Minutebook" in failed.err


def test_a_newer_server_may_say_more(ask: Call) -> None:
    row = {"name": "shop", "zone": "UTC", "owner": None}
    with answering(200, {}, json.dumps([{**row, "colour": "blue"}]).encode()) as url:
        listed = ask("--url", url, "app", "list", "--json")

    assert (listed.code, listed.json) == (0, [row])


def test_a_certificate_that_no_authority_signed_is_refused(ask: Call, tmp_path: Path) -> None:
    tls = tls_of_server(make_certificate(tmp_path))
    with answering(200, {}, b"[]", tls) as url:
        failed = ask("--url", url, "action", "list")

    assert failed.code == 1
    assert "CERTIFICATE_VERIFY_FAILED" in failed.err
    assert len(failed.err.splitlines()) == 1


def test_a_name_that_an_address_cannot_hold_is_refused(ask: Call) -> None:
    for name in ("..", ""):
        refused = ask("--url", "http://127.0.0.1:9", "action", "show", name)

        assert refused.code == 2
        assert refused.err == (
            f"error: {name!r} cannot be part of a request's address; write the uid or id\n"
        )


# Tokens


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FastAPI, str]]:
    """A server and its address; each test has it serve a home folder of its own."""
    opened = Installation(tmp_path_factory.mktemp("served"))
    app = make_app(opened)
    with serving(app, opened.settings.web) as url:
        yield app, url


@pytest.fixture
def served(
    server: tuple[FastAPI, str], home: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> Iterator[str]:
    """The address of a server of the small apps `default` and `shop`."""
    app, url = server
    app.state.installation = opened = Installation(home)
    assert run(["app", "apply", write({"name": "shop"}, "shop.json")]) == 0
    capsys.readouterr()
    yield url
    opened.engine.dispose()


def token_of(home: Path, app: str | None = None) -> str:
    """Return a new token of an editor of one small app or of all."""
    opened = Installation(home, app or "default", is_bound=app is not None)
    made = tokens.create(opened, Role.EDITOR, None).token
    opened.engine.dispose()
    return made


def test_a_wrong_token_is_refused(ask: Call, served: str) -> None:
    refused = ask("--url", served, "action", "list")

    assert refused.code == 2
    assert refused.err == (
        "error: the token is unknown, expired or revoked;"
        " check SCHED_TOKEN, --token-file or --token\n"
    )


def test_without_app_a_command_is_about_the_small_app_of_the_token(
    ask: Call, served: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHED_URL", served)
    for app in ("shop", None):
        monkeypatch.setenv("SCHED_TOKEN", token_of(home, app))
        assert ask("user", "add", f"of-{app}@example.com").code == 0
    own = ask("user", "list", "--json").json
    others = ask("--app", "shop", "user", "list", "--json").json

    assert [one["id"] for one in own] == ["of-None@example.com"]
    assert [one["id"] for one in others] == ["of-shop@example.com"]


def test_a_file_of_the_token_is_read(ask: Call, served: str, home: Path, write: Write) -> None:
    file = write(f"{token_of(home)}\n", "token")

    listed = ask("app", "list", "--json", "--url", f"{served}/api/", "--token-file", file)

    assert [one["name"] for one in listed.json] == ["default", "shop"]


def test_another_home_folder_means_this_machine(
    ask: Call, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHED_URL", "http://127.0.0.1:9")

    listed = ask("--home", str(home), "action", "list", "--json")

    assert (listed.code, listed.json, listed.err) == (0, [], "")


@pytest.mark.parametrize(("named", "told"), table(__file__, "servers_named_wrongly"))
def test_a_server_that_is_named_wrongly_is_refused(named: dict[str, Any], told: str) -> None:
    paths: dict[str, Any] = {
        key: Path(named[key]) for key in ("home", "token_file") if key in named
    }
    with pytest.raises((Refused, InvalidDocument), match=told) as refused:
        server_of(**{**named, **paths}, environ={})

    assert "mbt_x" not in str(refused.value)


def test_a_server_is_named_by_the_environment_and_by_options() -> None:
    environ = {"SCHED_URL": "https://x.example/below/", "SCHED_TOKEN": "mbt_x"}

    assert server_of(environ={}) is None
    found = server_of(app="shop", environ=environ)
    assert found == Remote("https://x.example/below", "mbt_x", "shop")
    assert "mbt_x" not in repr(found)
    assert server_of(url="http://y", environ=environ) == Remote("http://y", "mbt_x")
    named = server_of(token="mbt_y", environ=environ)
    assert named == Remote("https://x.example/below", "mbt_y")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://x.example", False),
        ("http://127.0.0.1:8265", False),
        ("http://localhost:8265", False),
        ("http://10.0.0.1", True),
        ("http://x.example", True),
    ],
)
def test_a_token_in_plain_text_on_a_network_is_exposed(url: str, expected: bool) -> None:
    assert is_exposed(url) is expected


def test_a_job_has_a_url_of_its_own() -> None:
    add = ["job", "add", "--url", "https://work.example"]

    assert hoisted(["--url", "http://x", *add]) == ["--url", "http://x", *add]
    assert hoisted([*add, "--token", "t"]) == ["--token", "t", *add]
    assert hoisted(["job", "list", "--url=http://x"]) == ["--url=http://x", "job", "list"]


@pytest.mark.parametrize("more", [(), ("--all-apps",), ("--all-apps", "--json")])
def test_a_list_warns_of_a_token_that_others_can_read(
    ask: Call, served: str, home: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr("cli.remote.opening.is_exposed", lambda _: True)

    listed = ask("--url", served, "--token", token_of(home), "run", "list", *more)

    assert (listed.code, "unencrypted; use https" in listed.err) == (0, True)
