"""The socket of an agent: made so that only its account, or one group, can connect."""

import os
import shutil
import socket
import socketserver
import stat
from pathlib import Path

from models.errors import Refused


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    # All threads of a pool may connect at once.
    request_queue_size = 1024


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
        mode = folder.stat().st_mode
    except OSError as error:
        raise Refused(f"--socket: {folder} cannot be used: {error.strerror}") from None
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise Refused(
            f"--socket: every account may write in {folder}; run chmod o-w {folder}, or use "
            "another folder"
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
