"""The one HTTP client against servers that answer without end, too slowly, or from elsewhere."""

import socket
import threading
from collections.abc import Iterator

import httpx
import psutil
import pytest

from runtime.clock import monotonic
from runtime.egress.deadline import Deadline
from runtime.egress.guard import guarded_client
from runtime.egress.request import Request, RequestFailed, status_of
from scheduler.ping import Ping
from tests.hostile.raw_server import endless, raw_server
from tests.receiver import Receiver, receiver

HEAD = b"HTTP/1.1 200 OK\r\n"
MOST_MIB = 20


@pytest.fixture
def elsewhere() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def asked(port: int, **more: object) -> int:
    request = Request(f"http://127.0.0.1:{port}/", allow_private=True, **more)  # type: ignore[arg-type]
    return status_of(request, 1)


def test_a_body_without_end_is_not_read() -> None:
    before = psutil.Process().memory_info().rss

    with raw_server(endless(HEAD + b"\r\n", b"x" * (1 << 20))) as port:
        assert asked(port) == 200

    assert psutil.Process().memory_info().rss - before < MOST_MIB << 20


@pytest.mark.parametrize(
    "rest", [pytest.param(b"x" * (1 << 16), id="one"), pytest.param(b"X: y\r\n" * 999, id="many")]
)
def test_headers_without_end_are_refused(rest: bytes) -> None:
    before = psutil.Process().memory_info().rss

    with raw_server(endless(HEAD + b"X: ", rest)) as port, pytest.raises(RequestFailed):
        asked(port)

    assert psutil.Process().memory_info().rss - before < MOST_MIB << 20


def test_the_deadline_covers_an_answer_that_drips() -> None:
    began = monotonic()

    with raw_server(endless(b"H", b"H", 0.05)) as port, pytest.raises(RequestFailed) as failed:
        asked(port)

    assert failed.value.is_late
    assert monotonic() - began < 10


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param({"method": "POST", "body": b"{}"}, id="body"),
        pytest.param({"headers": {"X-Token": "s3cret"}}, id="header"),
        pytest.param({"name": "env:SECRET_URL"}, id="url"),
    ],
)
def test_a_body_and_a_secret_go_to_no_other_server(
    elsewhere: Receiver, secret: dict[str, object]
) -> None:
    with receiver() as first:
        first.answers, first.headers = [307], {"Location": elsewhere.url}
        assert asked(int(first.url.rpartition(":")[2]), **secret) == 307

    assert elsewhere.got == []


def test_a_ping_of_the_daemon_is_redirected_nowhere(
    elsewhere: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    with receiver() as first:
        first.answers, first.headers = [302], {"Location": elsewhere.url}
        for url in (first.url, "http://127.0.0.1:1"):
            ping = Ping(f"{url}/s3cret")
            ping.send()
            ping.wait()

    assert elsewhere.got == []
    assert "the ping was not answered: it answered 302" in caplog.text
    assert caplog.text.count("the ping was not answered") == 2
    assert "s3cret" not in caplog.text


def test_a_ping_of_the_daemon_reads_no_body() -> None:
    before = psutil.Process().memory_info().rss

    with raw_server(endless(HEAD + b"\r\n", b"x" * (1 << 20))) as port:
        ping = Ping(f"http://127.0.0.1:{port}/")
        ping.send()
        ping.wait()

    assert psutil.Process().memory_info().rss - before < MOST_MIB << 20


def test_a_cut_ends_a_handshake_that_the_server_leaves_unanswered() -> None:
    """The plain socket is TLS's by then: closing it would close nothing."""
    deadline = Deadline(60)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def cut_at_the_handshake() -> None:
            connection, _ = server.accept()
            with connection:
                # The client's hello is there: its handshake has begun.
                assert connection.recv(1)
                deadline.cut()
                ended.wait(10)

        ended = threading.Event()
        thread = threading.Thread(target=cut_at_the_handshake)
        thread.start()
        url = f"https://127.0.0.1:{server.getsockname()[1]}/"
        with (
            deadline,
            guarded_client(deadline, allow_private=True, setting="IT") as client,
            pytest.raises(httpx.HTTPError),
        ):
            client.get(url)
        is_in_time = thread.is_alive()
        ended.set()
        thread.join()

    assert is_in_time
