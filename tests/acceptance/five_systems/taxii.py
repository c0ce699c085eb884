"""A TAXII-like server: a collection that is asked for what was added after an instant."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import parse_qs, urlsplit


@dataclass
class Collection:
    """Its address, its objects with the instants at which they were added, and what it was asked.

    While it is down it answers 503.
    """

    url: str
    objects: dict[int, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    is_down: bool = False


@contextmanager
def taxii_server() -> Iterator[Collection]:
    """Yield a collection that is served on a loopback port."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.collection = Collection(f"http://127.0.0.1:{server.server_address[1]}/objects")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.collection
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    collection: Collection


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = cast(_Server, self.server).collection
        (since,) = parse_qs(urlsplit(self.path).query)["added_after"]
        found.asked.append(since)
        new = [{"id": id} for id, added in found.objects.items() if added > since]
        self.send_response(503 if found.is_down else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"objects": new}).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""
