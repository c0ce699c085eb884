"""A real web server that takes webhooks: answers as told, and keeps what it was sent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast


@dataclass(frozen=True)
class Got:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """The server's address, its next answers (200 when there are none), and what it got."""

    url: str
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    # Seconds between the bytes of the answer, waited on an event that ends with the server.
    trickle_s: float = 0
    got: list[Got] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Yield a running server on a loopback port."""
    server = _Server(("127.0.0.1", 0), _Handler)
    found = server.receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield found
    finally:
        found.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    receiver: Receiver

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: who calls may hang up."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self._take()

    def do_GET(self) -> None:
        self._take()

    def _take(self) -> None:
        mine = cast(_Server, self.server).receiver
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        mine.got.append(Got(self.command, self.path, dict(self.headers.items()), body))
        status = mine.answers.pop(0) if mine.answers else 200
        lines = [f"HTTP/1.1 {status} as told", *(f"{k}: {v}" for k, v in mine.headers.items())]
        answer = "\r\n".join([*lines, "Content-Length: 0", "Connection: close", "", ""]).encode()
        with suppress(OSError):
            self._send(answer, mine)
        self.close_connection = True

    def _send(self, answer: bytes, mine: Receiver) -> None:
        if not mine.trickle_s:
            self.wfile.write(answer)
            return
        for byte in answer:
            if mine.stopping.wait(mine.trickle_s):
                return
            self.wfile.write(bytes([byte]))

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""
