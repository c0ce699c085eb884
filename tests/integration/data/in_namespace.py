"""Run by test_namespace.py inside a network namespace: serve all addresses, fetch from each."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import AF_INET6
from tempfile import TemporaryDirectory

from data.failures import SourceFailed
from data.fetch.downloads import download
from data.settings import FetchSettings
from runtime.egress.request import Request
from tasks.bounded.limits import Watch

PUBLIC = "93.184.216.34"
asked_of: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        here = self.connection.getsockname()[0].removeprefix("::ffff:")
        if here != PUBLIC:
            asked_of.append(here)
        self.send_response(302 if self.path.startswith("/to/") else 200)
        if self.path.startswith("/to/"):
            self.send_header("Location", f"http://{self.path.removeprefix('/to/')}/")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"a\n")

    def log_message(self, *_: object) -> None:
        """Stay quiet: stdout and stderr are the test's."""


class _Server(ThreadingHTTPServer):
    address_family = AF_INET6


@contextmanager
def serving() -> Iterator[None]:
    """Serve on port 80 of every address."""
    server = _Server(("::", 80), _Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def outcome(url: str, folder: Path) -> str:
    try:
        download(Request(url), folder / "part", FetchSettings(timeout_s=5), Watch())
    except SourceFailed as error:
        return str(error)
    return "fetched"


def main(hidden: list[str]) -> None:
    """Bring the addresses up, and print a line for each way to each of them."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (PUBLIC, *hidden):
        subprocess.run(["ip", "addr", "add", address, "dev", "lo"], check=True)
    with serving(), TemporaryDirectory() as folder:
        say("public:", outcome(f"http://{PUBLIC}/", Path(folder)))
        for address in hidden:
            host = f"[{address}]" if ":" in address else address
            say(f"direct {address}:", outcome(f"http://{host}/", Path(folder)))
            url = f"http://{PUBLIC}/to/{host}"
            say(f"redirect {address}:", outcome(url, Path(folder)))
    say("asked of the hidden addresses:", asked_of)


if __name__ == "__main__":
    main(sys.argv[1:])
