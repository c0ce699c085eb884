"""A real web server that takes webhooks: answers as told, and keeps what it was sent."""

import threading
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

from tests.http_server import Handler, http_server


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


def receiver() -> AbstractContextManager[Receiver]:
    """Return a server, which runs as long as it is open."""
    return http_server(_Handler, Receiver)


class _Handler(Handler):
    def _take(self) -> None:
        mine: Receiver = self.server.known
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        mine.got.append(Got(self.command, self.path, dict(self.headers.items()), body))
        status = mine.answers.pop(0) if mine.answers else 200
        lines = [f"HTTP/1.1 {status} as told", *(f"{k}: {v}" for k, v in mine.headers.items())]
        answer = "\r\n".join([*lines, "Content-Length: 0", "Connection: close", "", ""]).encode()
        with suppress(OSError):
            self.trickle(answer, mine.trickle_s, mine.stopping)
        self.close_connection = True

    do_GET = do_POST = _take  # noqa: N815 - names of http.server
