"""The addresses that the HTTP door listens on."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from models.errors import Refused
from runtime.config import LONGEST_SOCKET_PATH
from runtime.logs.events import EventLog
from runtime.urls import host_and_port

logger = EventLog("minutebook.web")

# A port that is taken, or that only root may open.
PORT_REFUSED = (errno.EADDRINUSE, errno.EACCES)
ANOTHER_PORT = "set SCHED_WEB_PORT to a free port, or to 0 for any"
ANOTHER_HOST = "set SCHED_WEB_HOST to an address of this machine"


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises Refused if there is no such address, or it is taken."""
    try:
        made = _bound(host, port)
    except OSError as error:
        remedy = ANOTHER_PORT if error.errno in PORT_REFUSED else ANOTHER_HOST
        raise Refused(f"{host_and_port(host, port)}: {error.strerror}; {remedy}") from None
    except UnicodeError as error:  # a host with an empty or a long label
        raise Refused(f"{host_and_port(host, port)}: {error}; {ANOTHER_HOST}") from None
    made.listen(2048)
    return made


def listening_at(path: Path) -> socket.socket | None:
    """Return a listening socket that only this account may open; None if there can be none.

    Another server of the same home folder may have it, or the folder takes no sockets.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(path) as short:
            if made.connect_ex(short) == 0:
                made.close()
                return None
            path.unlink(missing_ok=True)
            made.close()
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            # The umask is the process's: no other thread makes files yet.
            before = os.umask(0o177)
            try:
                made.bind(short)
            finally:
                os.umask(before)
        made.listen(1024)
    except OSError as error:
        made.close()
        logger.warning(
            "socket_not_made", "workers need a URL and a token: {path}: {error}", path, error
        )
        return None
    return made


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield a path of a socket that is short enough: Linux names an open folder by a number."""
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _bound(host: str, port: int) -> socket.socket:
    found = [one[::4] for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    # A name such as `localhost` may have both kinds of addresses.
    family, address = max(found, key=lambda one: one[0] == socket.AF_INET)
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made
