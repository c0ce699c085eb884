"""What goes between a worker or a program of the user and the server, and what it is told."""

import json
import socket
import ssl
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from celery.app.task import Context

from minutebook import Client, actions
from minutebook.discarded import headers_of, ours
from minutebook.server import NotDone, Server, ServerAway, find_server
from tests.http_server import Handler, http_server
from tests.receiver import Receiver, receiver

OURS = {"id": "7", "attempt": 1}


def asked(status: int, body: Any = None) -> Any:
    with receiver() as served, closing(Server(served.url, "token")) as server:
        served.answers, served.body = [status], json.dumps(body).encode() if body else b""
        return server.ask("/x", {}, 5)


def problem(kind: str, detail: str = "why") -> dict[str, str]:
    return {"type": f"urn:minutebook:problem:{kind}", "detail": detail}


def test_arguments_come_before_the_environment_and_that_before_the_home_folder() -> None:
    environ = {"MINUTEBOOK_URL": "https://its/x/", "MINUTEBOOK_TOKEN": "t", "SCHED_HOME": "/home"}

    assert find_server("http://argument:1", None, None, environ).url == "http://argument:1"
    assert find_server(None, None, None, environ).url == "https://its/x"
    assert find_server(None, None, None, {"SCHED_HOME": "/home"}).url == "/home/web.sock"
    assert find_server(None, None, "/other", {"SCHED_HOME": "/home"}).url == "/other/web.sock"
    assert find_server(None, None, None, {}).url == str(Path(".minutebook/web.sock").absolute())


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({"MINUTEBOOK_URL": "http://web:8265"}, "MINUTEBOOK_TOKEN is missing for http://web:8265"),
        ({"MINUTEBOOK_URL": "web:8265"}, "is no URL of a server; write http://host:8265"),
    ],
)
def test_a_wrong_server_is_named_with_the_remedy(environ: dict[str, str], text: str) -> None:
    with pytest.raises(ServerAway, match=text):
        find_server(None, None, None, environ).ask("/api/followers", {}, 1.0)


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again() -> None:
    class Closing(Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # noqa: N802 - a name of http.server
            self.rfile.read(int(self.headers["Content-Length"]))
            paths.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            self.close_connection = True

    paths: list[str] = []
    with (
        http_server(Closing, Receiver) as served,
        closing(Server(f"{served.url}/below", "token")) as server,
    ):
        for _ in range(3):
            server.ask("/x", {}, 5)

    assert paths == ["/below/x"] * 3


@pytest.mark.parametrize("kind", ["not-taken", "not-ready", "lease-lost", "not-found"])
def test_a_refusal_has_its_kind(kind: str) -> None:
    status = 404 if kind == "not-found" else 409
    with pytest.raises(NotDone, match="why") as refused:
        asked(status, problem(kind))

    assert refused.value.kind == kind


@pytest.mark.parametrize(
    ("status", "kind", "is_in_doubt", "advice"),
    [
        pytest.param(503, "stopping", False, "why", id="stopping"),
        pytest.param(503, "database-unavailable", True, "why", id="database_away"),
        pytest.param(500, "internal", True, "why", id="it_failed"),
        pytest.param(401, "unauthorized", False, "minutebook token create --role worker", id="401"),
        pytest.param(403, "forbidden", False, "why", id="403"),
    ],
)
def test_a_server_that_cannot_now_may_have_done_it_or_not(
    status: int, kind: str, is_in_doubt: bool, advice: str
) -> None:
    with pytest.raises(ServerAway, match=advice) as away:
        asked(status, problem(kind))

    assert away.value.is_in_doubt is is_in_doubt


def test_what_is_no_server_of_ours_is_said() -> None:
    with pytest.raises(ServerAway, match="answers 404"):
        asked(404)


def test_a_server_that_is_silent_is_in_doubt_and_one_that_refuses_is_not() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(ServerAway, match="check MINUTEBOOK_URL") as away:
            Server(f"http://127.0.0.1:{silent.getsockname()[1]}", "token").ask("/x", {}, 0.2)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with pytest.raises(ServerAway, match="whether `minutebook web` runs there") as refused:
        Server(url, "token").ask("/x", {}, 5)

    assert (away.value.is_in_doubt, refused.value.is_in_doubt) == (True, False)


def test_a_socket_that_is_not_there_or_in_a_long_folder_is_named(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()

    for path in (tmp_path, folder):
        with pytest.raises(ServerAway, match="start `minutebook up` here, or set MINUTEBOOK_URL"):
            Server(str(path / "web.sock")).ask("/x", {}, 5)


def test_a_certificate_that_is_not_trusted_names_the_variable() -> None:
    advice = Server("https://web:8265", "token")._advice(ssl.SSLCertVerificationError("self"))

    assert "set SSL_CERT_FILE to the certificate of its authority" in advice


@pytest.mark.parametrize("token", ["mbt_s3\r\ncret", "mbt_s3cr\u00e9t", "mbt_s3\0cret"])
def test_a_broken_token_is_refused_unshown(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"SCHED_URL": "http://127.0.0.1:1", "SCHED_TOKEN": token})

    with pytest.raises(actions.NotConfigured, match="the token holds a line break") as refused:
        actions.client()

    assert "s3" not in str(refused.value)


def test_a_line_break_after_a_token_is_left_out() -> None:
    client = Client("http://127.0.0.1:1", "mbt_s3cret\n")

    assert client._http.headers["Authorization"] == "Bearer mbt_s3cret"


def test_a_header_is_found_where_celery_5_2_keeps_it() -> None:
    request = Context(id="7", minutebook=OURS)
    request.headers = None

    assert ours(headers_of(request), "7") == OURS


def test_a_header_that_was_set_for_the_next_attempt_goes_first() -> None:
    later = {**OURS, "attempt": 2}
    request = Context(id="7", minutebook=OURS, headers={"minutebook": later, "trace": "x"})

    assert headers_of(request) == {"minutebook": later, "trace": "x"}


def test_a_message_of_somebody_else_has_none() -> None:
    assert headers_of(Context(id="7")) == {}
