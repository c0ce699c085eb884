"""A web server on a loopback port, in a thread of the test."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, TypeVar


class Server(ThreadingHTTPServer):
    """A server whose handlers share what the test knows of it."""

    known: Any = None

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: who calls may hang up."""


class Handler(BaseHTTPRequestHandler):
    """One request, of which nothing is logged."""

    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""

    def trickle(self, content: bytes, pause_s: float, stopping: threading.Event) -> None:
        """Write the bytes, one by one if there is a pause between them."""
        if not pause_s:
            self.wfile.write(content)
            return
        for byte in content:
            if stopping.wait(pause_s):
                return
            self.wfile.write(bytes([byte]))


class Known(Protocol):
    """What a test knows of its server: what its handlers answer, and what they were asked."""

    stopping: threading.Event


Its = TypeVar("Its", bound=Known)


@contextmanager
def http_server(
    handler: type[Handler], known_at: Callable[[str], Its], tls: ssl.SSLContext | None = None
) -> Iterator[Its]:
    """Run a server; yield what is known of it, which its address makes."""
    server = Server(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "https" if tls else "http"
    known = server.known = known_at(f"{scheme}://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield known
    finally:
        known.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
