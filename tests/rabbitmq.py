"""A throw-away RabbitMQ on loopback ports: it starts in seconds, so one serves a whole session."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import amqp
import psutil
import pytest
from amqp.exceptions import AMQPError
from kombu import Connection

from runtime.clock import wait_for
from tests.servers import await_answer, free_port, launched, running

START_S = 90
OF_DEBIAN = ("/usr/sbin/rabbitmq-server", "/sbin/rabbitmq-server")
# For other nodes and commands an Erlang machine listens on all addresses, unless it is told not to.
LOOPBACK_ONLY = "-kernel inet_dist_use_interface {127,0,0,1}"


def rabbitmq_binary() -> str | None:
    """Return the path of RabbitMQ's own `rabbitmq-server`, None where there is none.

    What Debian has on the PATH wants its own account; the script behind it runs as anybody.
    """
    found = shutil.which("rabbitmq-server")
    scripts = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server"))
    return str(scripts[-1]) if scripts and found in (None, *OF_DEBIAN) else found


@dataclass
class RabbitMQ:
    """A node with a data folder of its own."""

    folder: Path
    port: int = field(default_factory=free_port)
    # Arguments of the Erlang machine, such as settings of the application `rabbit`.
    arguments: str = ""
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.ports = {"RABBITMQ_DIST_PORT": free_port(), "ERL_EPMD_PORT": free_port()}

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def start(self) -> None:
        """Start the node; return when it answers."""
        binary = rabbitmq_binary()
        assert binary is not None
        (self.folder / "plugins").write_text("[].")
        own = {"env": self._environment(), "start_new_session": True}
        self.process = launched([binary], self.folder, **own)
        await_answer(self.answers, self.folder, START_S)

    def control(self, *arguments: str) -> None:
        command = [str(Path(str(rabbitmq_binary())).with_name("rabbitmqctl")), *arguments]
        done = subprocess.run(
            command, env=self._environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def _environment(self) -> dict[str, str]:
        own = {
            "HOME": self.folder,
            "RABBITMQ_NODENAME": f"minutebook{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": self.port,
            "RABBITMQ_MNESIA_BASE": self.folder / "data",
            "RABBITMQ_LOG_BASE": self.folder / "logs",
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.folder / "plugins",
            "RABBITMQ_CONFIG_FILE": self.folder / "none",
            "RABBITMQ_CONF_ENV_FILE": self.folder / "none",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                f"+S 1:1 +sbwt none {LOOPBACK_ONLY} {self.arguments}"
            ),
            "RABBITMQ_CTL_ERL_ARGS": LOOPBACK_ONLY,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            # Without it the Erlang machine makes room for all files that the system allows.
            "ERL_MAX_PORTS": 4096,
            **self.ports,
        }
        return {**os.environ, **{key: str(value) for key, value in own.items()}}

    def answers(self) -> bool:
        connection = amqp.Connection(f"127.0.0.1:{self.port}", connect_timeout=2)
        try:
            connection.connect()
        except (OSError, AMQPError):
            return False
        finally:
            # Also of a connection that the node refused or broke off: its socket would stay open.
            connection.collect()
        return True

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """Open a channel of the AMQP library itself."""
        with Connection(self.url) as connection, connection.channel() as channel:
            yield channel

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Kill the node, and the port mapper that it started; its data stay."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, how)
            self.process.wait(START_S)
        for process in self._port_mappers():
            with suppress(psutil.Error):
                # It refuses to end by its own command while it knows a node.
                process.kill()

    def _port_mappers(self) -> Iterator[psutil.Process]:
        """Yield the processes of `epmd` that this node started."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                is_mapper = process.name() == "epmd"
                if is_mapper and process.environ().get("HOME") == str(self.folder):
                    yield process

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Let the node take connections and answer nothing."""
        self.send_signal(signal.SIGSTOP)
        # Its other threads may answer once more meanwhile.
        assert wait_for(self._stands_still, START_S)
        try:
            yield
        finally:
            self.send_signal(signal.SIGCONT)

    def send_signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, number)

    def _stands_still(self) -> bool:
        """Whether each thread of the node's group of processes is stopped."""
        assert self.process is not None
        node = psutil.Process(self.process.pid)
        group = [
            one.pid
            for one in (node, *node.children(recursive=True))
            if os.getpgid(one.pid) == node.pid
        ]
        threads = (thread for pid in group for thread in Path(f"/proc/{pid}/task").iterdir())
        return all(
            (one / "stat").read_text().rpartition(") ")[2].startswith("T") for one in threads
        )

    def lose_everything(self) -> None:
        """Start it anew without its data."""
        self.stop()
        self.forget()
        self.start()

    def forget(self) -> None:
        """Remove the data of a stopped node."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)


def running_node(arguments: str = "") -> AbstractContextManager[RabbitMQ]:
    """Run a node; skips the test where there is no RabbitMQ."""
    if rabbitmq_binary() is None:
        pytest.skip("no RabbitMQ here, and no wheel brings one")
    return running(lambda folder: RabbitMQ(folder, arguments=arguments))
