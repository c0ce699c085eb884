"""The address that the HTTP door listens on."""

import errno
import socket

from models.errors import Refused
from runtime.urls import host_and_port

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
