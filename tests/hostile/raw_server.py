"""A server of bytes on loopback: says what it was told to, whatever it is asked."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

# Writes to one connection until it ends or the event says that the test is over.
Speaks = Callable[[socket.socket, threading.Event], None]


def answering(answer: bytes) -> Speaks:
    """Return what writes an answer to whatever is asked."""

    def speaks(connection: socket.socket, _over: threading.Event) -> None:
        connection.recv(10_000)
        connection.sendall(answer)

    return speaks


@contextmanager
def raw_server(speaks: Speaks) -> Iterator[int]:
    """Yield the port of a server that lets `speaks` write to each connection."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)

    def serve() -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                connection.settimeout(10)
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            speaks(connection, over)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        thread.join()
        listener.close()


def endless(first: bytes, rest: bytes, wait_s: float = 0, *, is_asked: bool = True) -> Speaks:
    """Return what sends `first`, then `rest` without end."""

    def speaks(connection: socket.socket, over: threading.Event) -> None:
        if is_asked:
            connection.recv(9_999)
        connection.sendall(first)
        while not over.wait(wait_s):
            connection.sendall(rest)

    return speaks
