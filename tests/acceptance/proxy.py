"""The way to the broker, or to the database, which a test may cut in the middle of a flush."""

import contextlib
import socket
from dataclasses import dataclass, field
from threading import Event, Thread


@dataclass
class Proxy:
    """Stands still in the middle of the first command of its kind, once."""

    broker_port: int
    command: bytes = b"LPUSH"
    is_cut: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self._ended = Event()
        self._goes_on = Event()
        self._sockets: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def port(self) -> int:
        return int(self._server.getsockname()[1])

    def release(self) -> None:
        """Let through what stood still, also for a client that is gone."""
        self._goes_on.set()

    def close(self) -> None:
        self._ended.set()
        self._goes_on.set()
        for one in (self._server, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._server.accept()
                broker = socket.create_connection(("127.0.0.1", self.broker_port))
            except OSError:
                return
            self._sockets += [client, broker]
            for way in ((client, broker, True), (broker, client, False)):
                Thread(target=self._forward, args=way, daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, is_cut_off: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                through = self._through(data) if is_cut_off else data
                sink.sendall(through)
                if len(through) < len(data):
                    self.is_cut.set()
                    self._goes_on.wait()
                    sink.sendall(data[len(through) :])
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _through(self, data: bytes) -> bytes:
        """Return what goes through of `data`: up to the middle of the first such command."""
        at = -1 if self.is_cut.is_set() else data.find(self.command)
        return data if at < 0 else data[: at + len(self.command)]
