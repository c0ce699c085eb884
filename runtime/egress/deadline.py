"""A deadline of a whole request; the time-outs of httpx restart with every byte."""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from time import monotonic
from typing import Any, Self, TypeVar

import httpx

T = TypeVar("T")
# A time-out of 0 would mean not to wait at all, and fail in another way.
_LEAST_S = 0.001


class Deadline:
    """Ends a request after `seconds`, or on an earlier `cut`.

    Its reader then fails or finds the end of the body: check `is_over` in either case.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_over = False
        self._ends_at = monotonic() + seconds
        self._socket: socket.socket | None = None
        self._asked: Future[Any] = Future()
        self._timer = threading.Timer(seconds, self.cut)
        self._timer.daemon = True

    @property
    def left_s(self) -> float:
        """The seconds that are left, above 0, for a time-out."""
        return max(self._ends_at - monotonic(), _LEAST_S)

    def cut(self) -> None:
        """End the wait or the connection; any thread may call this, repeatedly."""
        self.is_over = True
        self._asked.cancel()
        connection = self._socket
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def within(self, ask: Callable[[], T]) -> T:
        """Return what `ask` returns. Raises its error, or httpx.ConnectTimeout once it is over.

        `ask` runs on in its own thread, where nothing can end it: a resolver, for one.
        """
        asked: Future[T] = Future()

        def run() -> None:
            with suppress(InvalidStateError):
                try:
                    answer = ask()
                except Exception as error:
                    asked.set_exception(error)
                else:
                    asked.set_result(answer)

        self._asked = asked
        if self.is_over:
            asked.cancel()
        threading.Thread(target=run, name="deadline", daemon=True).start()
        try:
            return asked.result()
        except CancelledError:
            raise httpx.ConnectTimeout("") from None

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Take each connection from httpcore, as the extension `trace` of a request."""
        if event == "connection.connect_tcp.complete":
            self._let_go()
            # TLS takes the plain socket over: a duplicate ends the connection at any time.
            self._socket = info["return_value"].get_extra_info("socket").dup()
            if self.is_over:
                self.cut()
        elif event == "connection.start_tls.started":
            # Otherwise the handshake would get the time of the connection once more.
            info["timeout"] = self.left_s

    def __enter__(self) -> Self:
        self._ends_at = monotonic() + self.seconds
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()
        self._let_go()

    def _let_go(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
