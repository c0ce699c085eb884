"""Run by test_namespace.py in namespaces of its own: names whose server or resolver is silent."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socket import AF_INET, AF_INET6, SOCK_DGRAM, create_server, socket
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from data.failures import SourceFailed, Stopped
from data.fetch.downloads import download
from data.settings import FetchSettings
from runtime.egress.request import Request
from tasks.bounded.limits import Watch
from tests.web_source import Page, web_source

# The resolver puts it before 127.0.0.1.
SILENT = "::1"
HOSTS = f"{SILENT} both\n127.0.0.1 both\n"
# Longer than the test may take: whoever waits for the resolver fails it.
RESOLVER = "nameserver 127.0.0.1\noptions timeout:30 attempts:3\n"


def prepare(folder: Path) -> None:
    """Bring the loopback device up; let names be those of HOSTS, or else the resolver's."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for name, text in (("hosts", HOSTS), ("resolv.conf", RESOLVER)):
        (folder / name).write_text(text)
        subprocess.run(["mount", "--bind", str(folder / name), f"/etc/{name}"], check=True)


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


@contextmanager
def silent_resolver() -> Iterator[None]:
    """Take all questions for names, and answer none."""
    with socket(AF_INET, SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 53))
        yield


def main(folder: Path) -> None:
    prepare(folder)

    def fetch(url: str, timeout_s: float, watch: Watch | None = None) -> str:
        settings = FetchSettings(timeout_s=timeout_s, allow_private=True)
        try:
            download(Request(url), folder / "part", settings, watch or Watch())
        except SourceFailed as error:
            return str(error)
        except Stopped:
            return "stopped"
        return "done"

    with web_source() as web, silent_server(port := urlsplit(web.url).port or 80):
        web.pages["/"] = Page(b"id\n1\n")
        sys.stdout.write(f"silent address: {fetch(f'http://both:{port}/', 2)}\n")
    with silent_resolver():
        sys.stdout.write(f"silent resolver, a fetch: {fetch('http://c.example/', 0.5)}\n")
        watch = Watch()
        threading.Timer(0.5, watch.stop).start()
        sys.stdout.write(
            f"silent resolver, a cancelled fetch: {fetch('http://c.example/', 60, watch)}\n"
        )


if __name__ == "__main__":
    with TemporaryDirectory() as _folder:
        main(Path(_folder))
