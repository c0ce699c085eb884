"""A throw-away PgBouncer in front of the tests' PostgreSQL, with its defaults but for the mode."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from runtime.clock import wait_for
from tests.servers import START_S, PostgreSQL, free_port, temporary_folder

OF_DEBIAN = "/usr/sbin/pgbouncer"
CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server} user=minutehand

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
        return f"postgresql://minutehand@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the pooler; return when it lets a client through."""
        file = self.folder / "pgbouncer.ini"
        file.write_text(
            CONFIGURATION.format(server=self.server.port, port=self.port, mode=self.mode)
        )
        # It refuses to run as root.
        account = ("-u", "nobody") if os.getuid() == 0 else ()
        command = [str(pgbouncer_binary()), "-q", *account, str(file)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        if not wait_for(self.answers, START_S):
            raise RuntimeError((self.folder / "log").read_text()[-2000:])

    def answers(self) -> bool:
        """Whether a client gets through to the database."""
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

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
