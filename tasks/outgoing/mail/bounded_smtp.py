"""SMTP clients whose server has to answer within a time and within a size."""

import smtplib
import socket
from typing import Any

from runtime.clock import monotonic

LARGEST_ANSWER = 65_536


class _Answers:
    """The server's lines, as the file that smtplib reads."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._waiting = b""
        self._seconds: float | None = None
        self._ends_at = 0.0
        self._room = 0

    def begin(self) -> None:
        """Give the next answer, of one or many lines, its own time and size."""
        self._seconds = self._socket.gettimeout()
        self._ends_at = monotonic() + (self._seconds or 0.0)
        self._room = LARGEST_ANSWER

    def readline(self, most: int) -> bytes:
        """Return the next line, at most `most` bytes of it. Raises OSError."""
        while b"\n" not in self._waiting and len(self._waiting) < most:
            received = self._receive()
            if not received:
                break
            self._waiting += received
        end = self._waiting.find(b"\n") + 1 or len(self._waiting)
        line = self._waiting[: min(end, most)]
        self._waiting = self._waiting[len(line) :]
        self._room -= len(line)
        if self._room < 0:
            raise OSError(f"an answer of more than {LARGEST_ANSWER:,} bytes")
        return line

    def close(self) -> None:
        """Forget what was received; the client closes the socket."""
        self._waiting = b""

    def _receive(self) -> bytes:
        if self._seconds is None:
            return self._socket.recv(4096)
        left = self._ends_at - monotonic()
        if left <= 0:
            raise TimeoutError(f"no complete answer in {self._seconds:g} s")
        self._socket.settimeout(left)
        try:
            return self._socket.recv(4096)
        except TimeoutError:
            raise TimeoutError(f"no complete answer in {self._seconds:g} s") from None
        finally:
            self._socket.settimeout(self._seconds)


class Client(smtplib.SMTP):
    """An SMTP client that waits for each answer no longer than its time-out in all."""

    def getreply(self) -> tuple[int, bytes]:
        """Return code and text of the next answer. Raises SMTPServerDisconnected."""
        # smtplib makes a file of its own where it finds none: at the start and after STARTTLS.
        file: Any = self.file
        if self.sock is not None and file is None:
            file = self.file = _Answers(self.sock)
        if file is not None:
            file.begin()
        return super().getreply()


class SecureClient(Client, smtplib.SMTP_SSL):
    """The same over TLS from the first byte."""
