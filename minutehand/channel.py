"""A connection to the agent beside a worker: one request and one answer, each a line of JSON."""

import json
import socket
import threading
from typing import Any


class AgentAway(Exception):
    """The agent does not answer; it is started again, or its machine is in trouble."""


class Channel:
    """A connection that belongs to one operation; the agent takes its end for the process's."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._rest = b""

    @property
    def is_open(self) -> bool:
        """Whether the connection stood when it was last used."""
        return self._socket is not None

    def ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Return the agent's answer, connecting first where necessary; raises AgentAway."""
        with self._lock:
            try:
                connected = self._connected()
                connected.settimeout(timeout_s)
                connected.sendall(json.dumps(request, default=str).encode() + b"\n")
                answer: dict[str, Any] = json.loads(self._line(connected))
            except (OSError, ValueError) as error:
                self._close()
                raise AgentAway(f"{type(error).__name__}: {error}") from error
            return answer

    def close(self) -> None:
        """Close the connection; what is held over it and has not ended counts as left behind."""
        with self._lock:
            self._close()

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._rest = b""
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                opened.settimeout(5)
                opened.connect(self.path)
            except OSError:
                opened.close()
                raise
            self._socket = opened
        return self._socket

    def _line(self, connected: socket.socket) -> bytes:
        while b"\n" not in self._rest:
            more = connected.recv(65_536)
            if not more:
                raise ConnectionResetError("the agent closed the connection")
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        return line

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
