"""A real `minutebook web` process and plain HTTP/1.1 connections to it, for the benchmarks."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.harness import Database, process, until
from models.roles import Role
from services import tokens
from services.installation import Installation
from tests.servers import free_port
from web.open_requests import MOST_OF_TOKEN


@dataclass(frozen=True)
class Server:
    """A web process, and a token that opens everything."""

    pid: int
    port: int
    token: str
    make_token: Callable[[], str]

    @property
    def authorization(self) -> str:
        """The header line that carries the token."""
        return f"Authorization: Bearer {self.token}"


@contextmanager
def web_process(database: Database, **environment: str) -> Iterator[Server]:
    """Run a web process during the block."""
    opened = Installation(database.settings.home)
    opened.__dict__.update(settings=database.settings, engine=database.engine)

    def make_token() -> str:
        return tokens.create(opened, Role.ADMIN, None).token

    port, log = free_port(), database.settings.home / "web.log"
    command = ["-m", "minutebook", "web", "--port", str(port)]
    with process(command, database.environment(**environment), log) as started:
        until(lambda: _answers(port), "the web process", log)
        yield Server(started.pid, port, make_token(), make_token)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Connection:
    """A connection that is kept alive, with one request at a time."""

    server: Server
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @staticmethod
    async def open(server: Server) -> "Connection":
        """Connect."""
        return Connection(server, *await asyncio.open_connection("127.0.0.1", server.port))

    def send(self, method: str, path: str, body: Any = None) -> None:
        """Send a request."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = (
            f"{method} {path} HTTP/1.1",
            "Host: 127.0.0.1",
            self.server.authorization,
            f"Content-Length: {len(content)}",
        )
        self.writer.write("\r\n".join((*lines, "", "")).encode() + content)

    async def head(self) -> tuple[int, bytes]:
        """Return the status and the headers of the answer."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        return int(head[9:12]), head.lower()

    async def answer(self) -> tuple[int, bytes]:
        """Return the status and the body of the answer."""
        status, head = await self.head()
        _, found, rest = head.partition(b"content-length: ")
        length = int(rest.partition(b"\r\n")[0]) if found else 0
        return status, await self.reader.readexactly(length)

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()


async def connections(server: Server, number: int) -> list[Connection]:
    """Open many connections, with a token for as many as may hold a request open."""
    made = []
    for count in range(number):
        if count % MOST_OF_TOKEN == 0:
            server = replace(server, token=server.make_token())
        made.append(await Connection.open(server))
    return made
