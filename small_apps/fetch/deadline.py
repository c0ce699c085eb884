"""A deadline of a whole request; the time-outs of httpx restart with every byte."""

import socket
import threading
from typing import Any, Self

_CONNECTED = ("connection.connect_tcp.complete", "connection.start_tls.complete")


class Deadline:
    """Closes the connection of a request after `seconds`, or on an earlier `cut`.

    Its reader then fails or finds the end of the body: check `is_over` in either case.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_over = False
        self._socket: Any = None
        self._timer = threading.Timer(seconds, self.cut)
        self._timer.daemon = True

    def cut(self) -> None:
        """End the connection; any thread may call this, repeatedly."""
        self.is_over = True
        if self._socket is not None:
            try:
                # Of the plain socket: TLS's own `shutdown` would detach the connection's reader.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                return

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Take the connection from httpcore, as the extension `trace` of a request."""
        if event in _CONNECTED:
            self._socket = info["return_value"].get_extra_info("socket")
            if self.is_over:
                self.cut()

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.cancel()
        self._socket = None
