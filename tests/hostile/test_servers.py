"""Mail servers that never stop; servers, names and URLs that would show what they must not."""

import socket
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data.failures import SourceFailed
from data.fetch.downloads import download
from data.fetch.query import query
from data.settings import FetchSettings, Settings
from runtime.egress.addresses import checked_addresses, without_addresses
from runtime.egress.request import Request, RequestFailed, status_of
from runtime.visible import visible_line
from tasks.bounded.limits import Watch
from tasks.outgoing.failures import MailServerFailed
from tasks.outgoing.mail.message import Content, Envelope, build_message
from tasks.outgoing.mail.smtp import SmtpTransport
from tests.hostile.raw_server import Speaks, answering, endless, raw_server

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
SECRET = "PASSW0RD"
OPEN = FetchSettings(timeout_s=10, allow_private=True)
# A name, and a port at which nothing listens.
NAME = "localhost:1"


def send(port: int, timeout_s: float) -> None:
    envelope = Envelope("mb@example.com", "ann@example.com", None, "<1.send@example.com>", NOW)
    transport = SmtpTransport(f"smtp://127.0.0.1:{port}", timeout_s)
    transport.send(build_message(Content("Hello", "text"), envelope))


def never(_connection: socket.socket, over: threading.Event) -> None:
    """Say nothing."""
    over.wait()


# A mail server speaks first.
WITHOUT_END = endless(b"220 hello\r\n", b"250-and one more\r\n" * 100, is_asked=False)
IN_ONE_LINE = endless(b"220-", b"x" * 10_000, is_asked=False)
# A byte at a time, each well within the time-out of a read.
TRICKLES = endless(b"220-", b"x", 0.1, is_asked=False)


@pytest.mark.parametrize("speaks", [WITHOUT_END, IN_ONE_LINE], ids=["lines", "one_line"])
def test_an_answer_without_end_is_cut_off(speaks: Speaks) -> None:
    with raw_server(speaks) as port, pytest.raises(MailServerFailed) as failed:
        send(port, timeout_s=60)

    assert "cannot be reached" in str(failed.value)
    assert len(str(failed.value)) < 2_000


@pytest.mark.parametrize("speaks", [TRICKLES, never], ids=["trickles", "never"])
def test_an_answer_that_trickles_has_the_time_of_one_answer(speaks: Speaks) -> None:
    # A trickle resets a time-out per read: without a deadline this would never end.
    with raw_server(speaks) as port, pytest.raises(MailServerFailed, match=r"in 1 s|timed out"):
        send(port, timeout_s=1)


def fetch(url: str, folder: Path) -> None:
    download(Request(url), folder / "a", OPEN, Watch())


def test_the_reason_of_a_web_server_is_not_passed_on(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 404 \x1b[2J\x9b\r\nContent-Length: 0\r\n\r\n"
    with raw_server(answering(answer)) as port, pytest.raises(SourceFailed) as failed:
        fetch(f"http://127.0.0.1:{port}/a", tmp_path)

    assert str(failed.value) == f"http://127.0.0.1:{port}/a answered 404 Not Found"


@pytest.mark.parametrize(
    "answer",
    [
        b"\x1b]0;title\x07", b"HTTP/1.1 200 OK\r\n\x1b[2J: x\r\n\r\n", b"HTTP/1.1 999 \xff\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[::1\x1b[2J\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://a:b@:99999999/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", b"",
    ],
)  # fmt: skip
def test_an_answer_that_is_no_http_has_an_error_of_ours(tmp_path: Path, answer: bytes) -> None:
    with raw_server(answering(answer)) as port, pytest.raises(SourceFailed) as failed:
        fetch(f"http://127.0.0.1:{port}/a", tmp_path)

    text = str(failed.value)
    assert visible_line(text) == text
    assert text.startswith(f"http://127.0.0.1:{port}/a")


@pytest.mark.parametrize(
    "url",
    [
        f"http://ann:{SECRET}/x@127.0.0.1:1/a", f"http://ann:{SECRET}#@127.0.0.1:1/a",
        f"http://ann:x@127.0.0.1:{SECRET}/a", f"http://[{SECRET}]/a", f"http://{SECRET}:1:2/a",
        f"http://ann:{SECRET}@127.0.0.1:1/a", f"ftp://{SECRET}@127.0.0.1/a",
    ],
)  # fmt: skip
def test_a_secret_url_never_shows(tmp_path: Path, url: str) -> None:
    with pytest.raises(SourceFailed) as failed:
        download(Request(url, {}, "env:REPORTS_URL"), tmp_path / "a", OPEN, Watch())

    assert SECRET.lower() not in str(failed.value).lower()
    assert "env:REPORTS_URL" in str(failed.value)


def shows_an_address(error: object) -> bool:
    found = checked_addresses("localhost", 1, allow_private=True)
    return any(address in str(error) for address in (*found, "::1"))


@pytest.mark.parametrize("is_allowed", [True, False], ids=["allowed", "refused"])
def test_no_request_says_to_which_address_a_name_leads(tmp_path: Path, is_allowed: bool) -> None:
    request = Request(f"http://{NAME}/a.csv", allow_private=is_allowed)
    settings = FetchSettings(allow_private=is_allowed)

    with pytest.raises(RequestFailed) as unanswered:
        status_of(request, 5)
    with pytest.raises(SourceFailed) as unread:
        download(request, tmp_path / "a", settings, Watch())

    assert not shows_an_address(unanswered.value)
    assert not shows_an_address(unread.value)


def test_no_connection_says_to_which_address_its_host_leads(tmp_path: Path) -> None:
    connections = {"warehouse": f"postgresql+psycopg://u:p@{NAME}/x"}
    settings = Settings.model_validate({"home": tmp_path, "connections": connections})

    with pytest.raises(SourceFailed, match="warehouse: connection failed") as failed:
        query("SELECT 1", "warehouse", tmp_path / "rows", settings, Watch())

    assert not shows_an_address(failed.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('to server at "10.0.0.8", port 5432', 'to server at "…", port 5432'),
        ("db (fe80::1:2), port 5432", "db (…), port 5432"),
        ("at 12:30:05, x::int, 1.5 of 2.0", "at 12:30:05, x::int, 1.5 of 2.0"),
    ],
    ids=["version_4", "version_6", "no_address"],
)
def test_addresses_alone_are_hidden(text: str, shown: str) -> None:
    assert without_addresses(text) == shown
