"""Run a command in its own network, below a read-only root, as an account that is not root.

In namespaces of mounts and networks: `python confined.py SOCKET FOLDER PORT… -- COMMAND`. The
command reaches these ports of 127.0.0.1 alone, and may write to FOLDER alone. Who listens at SOCKET
gets the sockets of the ports, and serves them.
"""

import fcntl
import os
import socket
import struct
import subprocess
import sys

SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def main(told: str, folder: str, *rest: str) -> None:
    """Prepare the namespaces, and become the command."""
    ports, command = rest[: rest.index("--")], rest[rest.index("--") + 1 :]
    for mount in (
        ("--make-rprivate", "/"),
        ("--bind", folder, folder),
        ("-o", "remount,bind,ro", "/"),
    ):
        subprocess.run(["mount", *mount], check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    ways = [socket.create_server(("127.0.0.1", int(port))) for port in ports]
    with socket.socket(socket.AF_UNIX) as teller:
        teller.connect(told)
        socket.send_fds(teller, [b"ways"], [one.fileno() for one in ways])
    os.chdir(folder)
    os.execvp("unshare", ["unshare", "--user", "--map-user=10001", "--map-group=10001", *command])


if __name__ == "__main__":
    main(*sys.argv[1:])
