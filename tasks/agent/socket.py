"""The socket of an agent: made so that only its account, or one group, can connect."""

import os
import shutil
import socket
import socketserver
import stat
import threading
from pathlib import Path
from typing import Any

from models.errors import Refused
from runtime.logs.events import EventLog

logger = EventLog("minutebook.agent")

# Each running task holds one connection, which has a thread and a descriptor. Most systems give a
# process 1,024 descriptors; TasksMax of the agent's unit leaves room for the threads.
MOST_CONNECTIONS = 800
# Threads of the agent that serve no connection.
OTHER_THREADS = 32


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves each connection in a thread, and closes at once those beyond MOST_CONNECTIONS."""

    daemon_threads = True
    # All threads of a pool may connect at once.
    request_queue_size = 1024

    def __init__(self, path: str, handler: type[socketserver.BaseRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(path, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for `request`, or close it if too many are open."""
        if not self._free.acquire(blocking=False):
            logger.warning(
                "agent_full",
                "{connections} connections are open: another one is closed",
                MOST_CONNECTIONS,
            )
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError as error:
            # The machine has no thread left: this connection is closed, and leaves no place taken.
            self._free.release()
            self.shutdown_request(request)
            logger.warning(
                "agent_without_thread",
                "no thread for a connection, which is closed: {error}",
                error,
            )

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve `request`, then make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()


def listening(
    path: Path, handler: type[socketserver.BaseRequestHandler], group: str | None = None
) -> Server:
    """Return a server at `path`, which its own account may use, and `group`; raises Refused."""
    check_folder(path.parent)
    _remove_stale(path)
    # The umask is the process's: no other thread makes files yet.
    before = os.umask(0o177)
    try:
        server = Server(str(path), handler)
    except OSError as error:
        raise Refused(f"--socket {path} cannot be made: {error.strerror or error}") from None
    finally:
        os.umask(before)
    if group is not None:
        try:
            shutil.chown(path, group=group)
            # Only now: until then the socket has the group of this account.
            path.chmod(0o660)
        except (LookupError, PermissionError) as error:
            server.server_close()
            path.unlink(missing_ok=True)
            raise Refused(f"--group {group!r} cannot be given the socket: {error}") from None
    return server


def check_folder(folder: Path) -> None:
    """Refuse a folder in which another account could replace the socket."""
    try:
        its = folder.stat()
    except OSError as error:
        raise Refused(f"--socket: {folder} cannot be used: {error.strerror}") from None
    if its.st_uid not in (0, os.geteuid()):
        raise Refused(
            f"--socket: {folder} belongs to the account {its.st_uid}, which could replace the "
            "socket; use a folder of your own"
        )
    if its.st_mode & stat.S_ISVTX:
        return
    if its.st_mode & stat.S_IWOTH:
        who, mend = "every account", "o-w"
    elif its.st_mode & stat.S_IWGRP and its.st_gid not in (0, os.getegid()):
        who, mend = f"the group {its.st_gid}", "g-w"
    else:
        return
    raise Refused(
        f"--socket: {who} may write in {folder}; run chmod {mend} {folder}, or use another folder"
    )


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Refused(f"--socket {path} is a file already; name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        if probe.connect_ex(str(path)) == 0:
            raise Refused(f"another agent serves {path} already")
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        raise Refused(f"--socket {path} is another account's; name another path") from None
