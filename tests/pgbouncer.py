"""A throw-away PgBouncer in front of the tests' PostgreSQL, with its defaults but for the mode."""

import os
import signal
import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.servers import (
    START_S,
    PostgreSQL,
    await_answer,
    free_port,
    installed,
    launched,
    running,
    takes_connections,
)

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


@dataclass
class PgBouncer:
    """A pooler of one mode: `session` or `transaction`."""

    folder: Path
    server: PostgreSQL
    mode: str
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def url(self, database: str) -> str:
        return f"postgresql://minutebook@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the pooler; return when it lets a client through."""
        file = self.folder / "pgbouncer.ini"
        file.write_text(
            CONFIGURATION.format(server=self.server.port, port=self.port, mode=self.mode)
        )
        # It refuses to run as root.
        account = ("-u", "nobody") if os.getuid() == 0 else ()
        command = [str(installed("pgbouncer")), "-q", *account, str(file)]
        self.process = launched(command, self.folder)
        await_answer(self.answers, self.folder)

    def answers(self) -> bool:
        return takes_connections(self.url("postgres"))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the pooler at once, with all connections."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(START_S)


def pooling(server: PostgreSQL, mode: str) -> AbstractContextManager[PgBouncer]:
    """Run a pooler in front of a server; skips the test where there is no PgBouncer."""
    if installed("pgbouncer") is None:
        pytest.skip("no PgBouncer here, and no wheel brings one")
    return running(lambda folder: PgBouncer(folder, server, mode))
