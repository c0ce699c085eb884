"""A real web server for data sources: answers by path, counts and keeps the requests."""

import threading
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

from tests.http_server import Handler, http_server


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


def web_source() -> AbstractContextManager[WebSource]:
    """Return a server, which runs as long as it is open."""
    return http_server(_Handler, WebSource)


class _Handler(Handler):
    def do_GET(self) -> None:  # noqa: N802 - a name of http.server
        source: WebSource = self.server.known
        source.requests.append((self.path, self.headers.get("Range")))
        source.headers.append({name.lower(): text for name, text in self.headers.items()})
        page = source.pages.get(self.path, Page(status=404))
        self.send_response(page.status)
        for name, value in page.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        body = page.body if page.trickle_s else page.body[: page.part]
        with suppress(OSError):
            self.trickle(body, page.trickle_s, source.stopping)
