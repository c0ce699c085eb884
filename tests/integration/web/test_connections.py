"""Clients that are slow, silent, gone, or without an end: none of them costs another anything."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from threading import Event, Thread
from urllib.parse import urlsplit

import pytest

from processes.http_protocol import LONGEST_HEAD
from runtime.clock import monotonic
from runtime.config import Settings
from tests.integration.web.conftest import APP, Serve, Web, with_shop

PATIENCE_S = 2.0
MIB = 2**20
# A limit, not an expectation.
SOON_S = 60.0


@pytest.fixture
def web(home_of: Callable[[str], Settings], serve: Serve) -> Web:
    """A server that waits two seconds for its clients."""
    settings = home_of("sqlite")
    limits = settings.web.model_copy(update={"body_timeout_s": PATIENCE_S, "max_body_mb": 1})
    return with_shop(serve(settings.model_copy(update={"web": limits})))


@pytest.fixture
def connect(web: Web) -> Iterator[Callable[[], socket.socket]]:
    """Open connections to the server; all end with the test."""
    address = (str(urlsplit(web.url).hostname), urlsplit(web.url).port)
    with ExitStack() as opened:

        def one() -> socket.socket:
            made = socket.socket()
            # Little is kept on the way to it.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            made.settimeout(SOON_S)
            made.connect(address)
            return opened.enter_context(closing(made))

        yield one


Connect = Callable[[], socket.socket]


def head(web: Web, line: str, *headers: str) -> bytes:
    """Return the head of a request with a token."""
    lines = [f"{line} HTTP/1.1", "Host: x", f"Authorization: Bearer {web.token()}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def is_closed(one: socket.socket) -> bool:
    """Wait for the end of a connection; return whether it came without an answer."""
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True


def sent_until_closed(one: socket.socket, part: bytes) -> tuple[int, bytes]:
    """Send `part` again and again until the server closes; return how much, and its answer."""
    answer, count = b"", 0
    try:
        while count < 64 * MIB:
            one.sendall(part)
            count += len(part)
    except OSError:
        pass
    try:
        while some := one.recv(65536):
            answer += some
    except OSError:
        pass
    return count, answer


def test_clients_that_send_slowly_or_nothing_hold_up_no_other_and_are_cut_off(
    web: Web, connect: Connect
) -> None:
    slow, silent = [connect() for _ in range(100)], [connect() for _ in range(100)]
    ended = Event()

    def trickle() -> None:
        for byte in head(web, "GET /api/apps"):
            for one in slow:
                try:
                    one.send(bytes([byte]))
                except OSError:
                    continue
            if ended.wait(0.2):
                return

    sender = Thread(target=trickle)
    sender.start()
    try:
        client, began = web.client(), monotonic()
        assert client.get("/api/apps").status_code == 200
        assert monotonic() - began < 20
        assert all(is_closed(one) for one in [*slow, *silent])
        assert client.get("/api/apps").status_code == 200
    finally:
        ended.set()
        sender.join()


def test_a_head_without_an_end_is_refused(connect: Connect) -> None:
    one = connect()
    one.sendall(b"GET / HTTP/1.1\r\nHost: ")

    count, answer = sent_until_closed(one, b"x" * 4096)

    assert count < LONGEST_HEAD + 8 * MIB
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("part", [b"1\r\nx\r\n", b"400\r\n" + b"x" * 1024 + b"\r\n"])
def test_a_body_without_an_end_is_refused(web: Web, connect: Connect, part: bytes) -> None:
    one = connect()
    one.sendall(head(web, f"POST /api/actions?app={APP}", "Transfer-Encoding: chunked"))

    count, answer = sent_until_closed(one, part * 64)

    assert count < 64 * MIB
    assert answer == b"" or answer[9:12] in {b"413", b"408"}
    assert web.client().get("/api/apps").status_code == 200


def test_a_body_without_an_end_behind_an_answer_is_cut_off(web: Web, connect: Connect) -> None:
    one = connect()
    text = head(web, "POST /api/actions", "Content-Length: 1000000").replace(b"mbt_", b"no_")
    one.sendall(text)
    assert one.recv(65536).startswith(b"HTTP/1.1 401")

    one.sendall(b"x")

    assert is_closed(one)
