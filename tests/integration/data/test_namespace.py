"""Sources in a private network namespace: addresses they may not reach, and silent ones.

The tests run this file in namespaces of its own, where it serves addresses and fetches from them.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socket import AF_INET, AF_INET6, SOCK_DGRAM, create_server, socket
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import pytest

from data.failures import SourceFailed, Stopped
from data.fetch.downloads import download
from data.settings import FetchSettings
from runtime.egress.request import Request
from tasks.bounded.limits import Watch
from tests.http_server import Handler, Server
from tests.namespaces import own_namespaces
from tests.web_source import Page, web_source

ROOT = Path(__file__).resolve().parents[3]
PUBLIC = "93.184.216.34"
HIDDEN = ("192.0.0.192", "168.63.129.16", "100.100.100.200", "169.254.169.254", "fec0::1")
# The resolver puts it before 127.0.0.1.
SILENT = "::1"
HOSTS = f"{SILENT} both\n127.0.0.1 both\n"
# Longer than the test may take: whoever waits for the resolver fails it.
RESOLVER = "nameserver 127.0.0.1\noptions timeout:30 attempts:3\n"


def run_inside(what: str) -> list[str]:
    """Return the lines that this file prints in namespaces of its own."""
    alone = own_namespaces("--map-root-user", "--net", "--mount")
    if not shutil.which("ip"):
        pytest.skip("this machine has no ip, which sets up the network of a namespace")
    done = subprocess.run(
        [*alone, sys.executable, "-P", __file__, what], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_neither_a_source_nor_a_redirect_reaches_an_address_of_the_inside() -> None:
    """The namespace has a public address and the hidden ones, and no way out."""
    lines = run_inside("hidden")

    assert lines[0] == "public: done"
    assert [line.partition(": ")[0] for line in lines[1:-1]] == [
        f"{way} {address}" for address in HIDDEN for way in ("direct", "redirect")
    ]
    assert all("leads to a private address" in line for line in lines[1:-1])
    assert lines[-1] == "asked of the hidden addresses: []"


def test_a_silent_address_or_resolver_holds_up_nothing_beyond_its_time() -> None:
    assert run_inside("silent") == [
        "silent address: done",
        "silent resolver, a fetch: http://c.example/ took longer than SCHED_FETCH_TIMEOUT_S=0.5",
        "silent resolver, a cancelled fetch: stopped",
    ]


asked_of: list[str] = []


class _Handler(Handler):
    def do_GET(self) -> None:  # noqa: N802 - a name of http.server
        here = self.connection.getsockname()[0].removeprefix("::ffff:")
        if here != PUBLIC:
            asked_of.append(here)
        self.send_response(302 if self.path.startswith("/to/") else 200)
        if self.path.startswith("/to/"):
            self.send_header("Location", f"http://{self.path.removeprefix('/to/')}/")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"a\n")


class _Server(Server):
    address_family = AF_INET6


def fetched(url: str, folder: Path, watch: Watch | None = None, **settings: Any) -> str:
    """Return how a download of a URL ends."""
    try:
        download(Request(url), folder / "part", FetchSettings(**settings), watch or Watch())
    except SourceFailed as error:
        return str(error)
    except Stopped:
        return "stopped"
    return "done"


def hidden(folder: Path) -> Iterator[str]:
    """Serve on port 80 of every address; yield a line for each way to each of them."""
    for address in (PUBLIC, *HIDDEN):
        subprocess.run(["ip", "addr", "add", address, "dev", "lo"], check=True)
    server = _Server(("::", 80), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"public: {fetched(f'http://{PUBLIC}/', folder)}"
    for address in HIDDEN:
        host = f"[{address}]" if ":" in address else address
        yield f"direct {address}: {fetched(f'http://{host}/', folder)}"
        yield f"redirect {address}: {fetched(f'http://{PUBLIC}/to/{host}', folder)}"
    yield f"asked of the hidden addresses: {asked_of}"


@contextmanager
def silent_server(port: int) -> Iterator[None]:
    """Let nothing answer at a port of the silent address: its queue of connections is full."""
    with ExitStack() as opened:
        opened.enter_context(create_server((SILENT, port), family=AF_INET6, backlog=0))
        for _ in range(4):
            client = opened.enter_context(socket(AF_INET6))
            client.setblocking(False)
            client.connect_ex((SILENT, port))
        yield


def silent(folder: Path) -> Iterator[str]:
    """Let names be those of HOSTS, or else of a resolver that answers no question."""
    for name, text in (("hosts", HOSTS), ("resolv.conf", RESOLVER)):
        (folder / name).write_text(text)
        subprocess.run(["mount", "--bind", str(folder / name), f"/etc/{name}"], check=True)
    its: dict[str, Any] = {"allow_private": True}
    with web_source() as web, silent_server(port := urlsplit(web.url).port or 80):
        web.pages["/"] = Page(b"id\n1\n")
        yield f"silent address: {fetched(f'http://both:{port}/', folder, timeout_s=2, **its)}"
    with socket(AF_INET, SOCK_DGRAM) as resolver:
        resolver.bind(("127.0.0.1", 53))
        url, watch = "http://c.example/", Watch()
        yield f"silent resolver, a fetch: {fetched(url, folder, timeout_s=0.5, **its)}"
        threading.Timer(0.5, watch.stop).start()
        ended = fetched(url, folder, watch, timeout_s=60, **its)
        yield f"silent resolver, a cancelled fetch: {ended}"


if __name__ == "__main__":
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with TemporaryDirectory() as _folder:
        for _line in {"hidden": hidden, "silent": silent}[sys.argv[1]](Path(_folder)):
            print(_line)  # noqa: T201
