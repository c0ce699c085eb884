"""A real web server for data sources: answers by path, counts and keeps the requests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast


@dataclass
class Page:
    """What one path answers; `part` ends the connection after so many bytes of the body."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    part: int | None = None
    # Seconds between the bytes of the body, waited on an event that ends with the server.
    trickle_s: float = 0


@dataclass
class WebSource:
    """The server's address, its pages, and what was asked for: (path, Range header)."""

    url: str
    pages: dict[str, Page] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    # The headers of each request, by lower-case name.
    headers: list[dict[str, str]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def downloads(self, path: str) -> int:
        """Return how often `path` was asked for whole."""
        return sum(asked == path and not of for asked, of in self.requests)


@contextmanager
def web_source() -> Iterator[WebSource]:
    """Yield a running server on a loopback port."""
    server = _Server(("127.0.0.1", 0), _Handler)
    source = server.source = WebSource(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield source
    finally:
        source.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    source: WebSource


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        source = cast(_Server, self.server).source
        source.requests.append((self.path, self.headers.get("Range")))
        source.headers.append({name.lower(): text for name, text in self.headers.items()})
        page = source.pages.get(self.path, Page(status=404))
        self.send_response(page.status)
        for name, value in page.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        with suppress(OSError):
            self._send_body(page, source.stopping)

    def _send_body(self, page: Page, stopping: threading.Event) -> None:
        if not page.trickle_s:
            self.wfile.write(page.body[: page.part])
            return
        for byte in page.body:
            if stopping.wait(page.trickle_s):
                return
            self.wfile.write(bytes([byte]))

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""
