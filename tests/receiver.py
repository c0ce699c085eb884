"""A real web server that takes webhooks: answers as told, and keeps what it was sent."""

import ssl
import threading
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

from tests.http_server import Handler, http_server


@dataclass(frozen=True)
class Got:
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
    body: bytes = b""
    # Seconds between the bytes of the answer, waited on an event that ends with the server.
    trickle_s: float = 0
    got: list[Got] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)


def receiver(tls: ssl.SSLContext | None = None) -> AbstractContextManager[Receiver]:
    """Return a server, which runs as long as it is open."""
    return http_server(_Handler, Receiver, tls)


class _Handler(Handler):
    def _take(self) -> None:
        mine: Receiver = self.server.known
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        mine.got.append(Got(self.command, self.path, dict(self.headers.items()), body))
        status = mine.answers.pop(0) if mine.answers else 200
        headers = {"Content-Length": len(mine.body), "Connection": "close"} | mine.headers
        lines = [f"HTTP/1.1 {status} as told", *(f"{k}: {v}" for k, v in headers.items())]
        answer = "\r\n".join([*lines, "", ""]).encode() + mine.body
        with suppress(OSError):
            self.trickle(answer, mine.trickle_s, mine.stopping)
        self.close_connection = True

    do_GET = do_POST = do_DELETE = _take  # noqa: N815 - names of http.server
