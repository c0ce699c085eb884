"""Mail servers that never stop, web servers and URLs that would show what they must not."""

import socket
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from data.failures import SourceFailed
from data.fetch.downloads import download
from data.settings import FetchSettings
from runtime.egress.request import Request
from runtime.visible import visible_line
from tasks.bounded.limits import Watch
from tasks.outgoing.failures import MailServerFailed
from tasks.outgoing.mail.message import Content, Envelope, build_message
from tasks.outgoing.mail.smtp import SmtpTransport
from tests.hostile.raw_server import Speaks, answering, raw_server

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
SECRET = "PASSW0RD"


def send(port: int, timeout_s: float) -> None:
    envelope = Envelope("mb@example.com", "ann@example.com", None, "<1.send@example.com>", NOW)
    transport = SmtpTransport(f"smtp://127.0.0.1:{port}", timeout_s)
    transport.send(build_message(Content("Hello", "text"), envelope))


def without_end(connection: socket.socket, over: threading.Event) -> None:
    """Greet, and answer EHLO with line after line."""
    connection.sendall(b"220 hello\r\n")
    connection.recv(1000)
    while not over.is_set():
        connection.sendall(b"250-and one more\r\n" * 100)


def in_one_line(connection: socket.socket, over: threading.Event) -> None:
    """Greet with a line that never ends."""
    connection.sendall(b"220-")
    while not over.is_set():
        connection.sendall(b"x" * 10_000)


def trickles(connection: socket.socket, over: threading.Event) -> None:
    """Greet with a byte at a time, each well within the time-out of a read."""
    connection.sendall(b"220-")
    while not over.wait(0.1):
        connection.sendall(b"x")


def never(_connection: socket.socket, over: threading.Event) -> None:
    """Say nothing."""
    over.wait()


@pytest.mark.parametrize("speaks", [without_end, in_one_line])
def test_an_answer_without_end_is_cut_off(speaks: Speaks) -> None:
    with raw_server(speaks) as port, pytest.raises(MailServerFailed) as failed:
        send(port, timeout_s=60)

    assert "cannot be reached" in str(failed.value)
    assert len(str(failed.value)) < 2_000


@pytest.mark.parametrize("speaks", [trickles, never])
def test_an_answer_that_trickles_has_the_time_of_one_answer(speaks: Speaks) -> None:
    # A trickle resets a time-out per read: without a deadline this would never end.
    with raw_server(speaks) as port, pytest.raises(MailServerFailed, match=r"in 1 s|timed out"):
        send(port, timeout_s=1)


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


OPEN = FetchSettings(timeout_s=10, allow_private=True)


def fetch(url: str, folder: Path) -> None:
    download(Request(url), folder / "a", OPEN, Watch())
