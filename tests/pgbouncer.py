"""A throw-away PgBouncer in front of the tests' PostgreSQL, with its defaults but for the mode."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.servers import (
    START_S,
    PostgreSQL,
    await_answer,
    free_port,
    launched,
    takes_connections,
    temporary_folder,
)

OF_DEBIAN = "/usr/sbin/pgbouncer"
CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server} user=minutebook

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
"""


def pgbouncer_binary() -> str | None:
    """Return the path of PgBouncer, None where there is none."""
    return shutil.which("pgbouncer") or shutil.which(OF_DEBIAN)


@dataclass
class PgBouncer:
    """A pooler of one mode: `session` or `transaction`."""

    folder: Path
    server: PostgreSQL
    mode: str
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def url(self, database: str) -> str:
        """Return the URL of a database by way of the pooler."""
        return f"postgresql://minutebook@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the pooler; return when it lets a client through."""
        file = self.folder / "pgbouncer.ini"
        file.write_text(
            CONFIGURATION.format(server=self.server.port, port=self.port, mode=self.mode)
        )
        # It refuses to run as root.
        account = ("-u", "nobody") if os.getuid() == 0 else ()
        command = [str(pgbouncer_binary()), "-q", *account, str(file)]
        self.process = launched(command, self.folder)
        await_answer(self.answers, self.folder)

    def answers(self) -> bool:
        """Whether a client gets through to the database."""
        return takes_connections(self.url("postgres"))

    def stop(self) -> None:
        """Stop the pooler at once, with all connections."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(START_S)


@contextmanager
def pooling(server: PostgreSQL, mode: str) -> Iterator[PgBouncer]:
    """Yield a pooler in front of a server; skips the test where there is no PgBouncer."""
    if pgbouncer_binary() is None:
        pytest.skip("no PgBouncer here, and no wheel brings one")
    folder = temporary_folder()
    pooler = PgBouncer(folder, server, mode)
    try:
        pooler.start()
        yield pooler
    finally:
        pooler.stop()
        shutil.rmtree(folder, ignore_errors=True)
