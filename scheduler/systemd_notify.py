"""Messages to the service manager that started this process: systemd's `sd_notify` protocol.

Without `NOTIFY_SOCKET` in the environment nothing is sent.
"""

import os
import socket
from contextlib import suppress

READY = "READY=1"
ALIVE = "WATCHDOG=1"
STOPPING = "STOPPING=1"


def status(text: str) -> str:
    """Return the message whose text `systemctl status` shows."""
    return f"STATUS={text}"


def notify(*messages: str) -> None:
    """Send messages in one datagram; a manager that cannot be reached is ignored."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # A leading @ stands for Linux's abstract sockets.
    place = "\0" + address[1:] if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        # A manager that does not read must not stop the loop.
        manager.setblocking(False)
        manager.sendto("\n".join(messages).encode(), place)
