"""The way of followers to web, on which a test stops requests or answers of single operations."""

from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from uuid import UUID

LONGEST_S = 120.0


@dataclass(frozen=True)
class Stop:
    """A request or its answer that stands still: then it is lost, or goes on late."""

    is_answer: bool
    is_lost: bool
    is_reached: Event = field(default_factory=Event)
    is_over: Event = field(default_factory=Event)

    def goes_on(self) -> bool:
        """Stand still until it is over; return whether the request or answer goes on."""
        if self.is_over.is_set():
            return True
        self.is_reached.set()
        self.is_over.wait(LONGEST_S)
        return not self.is_lost


class HeldWay(ThreadingHTTPServer):
    """Forwards requests to the port of a server that may be killed and started again."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Forwarded)
        self.port, self._stops = port, dict[str, Stop]()
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stop(self, id: UUID, verb: str, *, is_answer: bool, is_lost: bool) -> Stop:
        """Let what an operation's worker asks stand still: its `take` or its `end`."""
        made = Stop(is_answer, is_lost)
        self._stops[f"/api/operations/{id}:{verb}"] = made
        return made

    def release(self, *, are_lost: bool) -> None:
        """End the stops of those that are lost, or of those that go on late."""
        for one in self._stops.values():
            if one.is_lost == are_lost:
                one.is_over.set()

    def passes(self, path: str, *, is_answer: bool) -> bool:
        """Return whether a request or an answer goes on, once it may."""
        stop = self._stops.get(path)
        return stop is None or stop.is_answer != is_answer or stop.goes_on()


class _Forwarded(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        way: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # Without an answer, its client sees that the connection is broken.
        self.close_connection = True
        if not way.passes(self.path, is_answer=False):
            return
        server = HTTPConnection("127.0.0.1", way.port, timeout=LONGEST_S)
        try:
            server.request("POST", self.path, body, dict(self.headers))
            answer = server.getresponse()
            text = answer.read()
        except (OSError, HTTPException):
            return
        finally:
            server.close()
        if way.passes(self.path, is_answer=True):
            self.close_connection = False
            self._answer(answer.status, text)

    def _answer(self, status: int, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if text:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
