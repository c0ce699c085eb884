"""A connection to the agent beside a worker: one request and one answer, each a line of JSON."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any


class AgentAway(Exception):
    """The agent does not answer."""


class Channel:
    """A connection for one operation; when it closes, the agent takes the process for dead."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._rest = b""
        self._number = 0

    @property
    def is_open(self) -> bool:
        """Whether the connection was open when it was last used."""
        return self._socket is not None

    def ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Return the agent's answer, connecting first if necessary; raises AgentAway.

        A timeout keeps the connection, since closing it would report this process as dead. Late
        answers are ignored.
        """
        with self._lock:
            self._number += 1
            line = json.dumps({**request, "n": self._number}, default=str).encode() + b"\n"
            try:
                connected = self._connected()
                connected.settimeout(timeout_s)
                connected.sendall(line)
            except OSError as error:
                self._close()
                raise AgentAway(f"{type(error).__name__}: {error}") from error
            try:
                return self._answer(connected)
            # Before Python 3.10 they are two classes.
            except (TimeoutError, socket.timeout) as error:
                raise AgentAway(f"no answer within {timeout_s:g} s") from error
            except (OSError, ValueError) as error:
                self._close()
                raise AgentAway(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Close the connection; the agent ends an operation that it still holds."""
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

    def _answer(self, connected: socket.socket) -> dict[str, Any]:
        while True:
            answer: dict[str, Any] = json.loads(self._line(connected))
            if answer.get("n") == self._number:
                return answer

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
