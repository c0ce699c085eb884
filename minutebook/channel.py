"""A connection to the agent beside a worker: one request and one answer, each a line of JSON."""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any

CONNECT_S = 5.0


class AgentAway(Exception):
    """The agent does not answer."""


class Channel:
    """A connection for one operation at a time.

    When it closes before the operation ends, the agent takes the process for dead.
    """

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

    def is_alive(self) -> bool:
        """Return whether the agent still holds its end of the open connection."""
        with self._lock:
            if self._socket is None:
                return False
            try:
                self._socket.settimeout(0)
                return self._socket.recv(1, socket.MSG_PEEK) != b""
            except BlockingIOError:
                return True
            except OSError:
                return False

    def tell(self, request: dict[str, Any]) -> None:
        """Send what needs no answer; raises AgentAway."""
        with self._lock:
            try:
                self._connected().settimeout(CONNECT_S)
                self._connected().sendall(json.dumps(request, default=str).encode() + b"\n")
            except OSError as error:
                self._close()
                raise AgentAway(f"{type(error).__name__}: {error}") from error

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
                opened.settimeout(CONNECT_S)
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


class Channels:
    """The connections of this process that no task uses: the next task takes one of them."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._free: list[Channel] = []
        self._process = os.getpid()

    def take(self) -> Channel:
        """Return a connection for one operation, open if one was left."""
        if self._process != os.getpid():
            # What the parent of a pool's process left is the parent's.
            self._free, self._process = [], os.getpid()
        while self._free:
            channel = self._free.pop()
            if channel.is_alive():
                return channel
            channel.close()
        return Channel(self._path)

    def leave(self, channel: Channel) -> None:
        """Keep a connection whose operation has ended for the next task."""
        if channel.is_open and self._process == os.getpid():
            self._free.append(channel)
