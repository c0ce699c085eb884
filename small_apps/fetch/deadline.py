"""The end of a request, whatever the server does: time-outs of httpx count from byte to byte."""

import socket
import threading
from types import TracebackType
from typing import Any, Self

_CONNECTED = ("connection.connect_tcp.complete", "connection.start_tls.complete")


class Deadline:
    """Cuts the connections of a request off after `seconds`, or when `cut` is called before.

    What reads from one then fails, or finds the end of the body: ask `is_over` in either case.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_over = False
        self._socket: Any = None
        self._timer = threading.Timer(seconds, self.cut)
        self._timer.daemon = True

    def cut(self) -> None:
        """End the connection; may be called from another thread, again and again."""
        self.is_over = True
        if self._socket is not None:
            try:
                # The plain socket's: that of TLS would take the connection from its reader.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                return

    def trace(self, event: str, told: dict[str, Any]) -> None:
        """Take the connection that httpcore tells of, as the extension `trace` of a request."""
        if event in _CONNECTED:
            self._socket = told["return_value"].get_extra_info("socket")
            if self.is_over:
                self.cut()

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._socket = None
