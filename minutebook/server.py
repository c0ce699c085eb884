"""The server of Minutebook as a worker asks it: HTTP by the standard library.

Each request that is on its way has a connection; the next one uses it again.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

URL, TOKEN, HOME = "MINUTEBOOK_URL", "MINUTEBOOK_TOKEN", "SCHED_HOME"
DEFAULT_HOME = ".minutebook"
SOCKET = "web.sock"
# The longest path of a socket that all systems take.
LONGEST_PATH = 100
NEW_TOKEN = f"minutebook token create --role worker --tasks PATTERN; set {TOKEN} to it"
# Answers by which nothing was begun.
NOTHING_DONE = frozenset({"stopping", "unauthorized", "forbidden"})


class ServerAway(Exception):
    """The server does not answer, or cannot or will not now.

    `is_in_doubt`: it may have done what it was asked for all the same.
    """

    def __init__(self, text: str, *, is_in_doubt: bool = False) -> None:
        super().__init__(text)
        self.is_in_doubt = is_in_doubt


class NotDone(Exception):
    """The server refuses what it was asked for; `kind` says why: `lease-lost`, `not-taken` …"""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Server:
    """A server, by its URL and a token, or by its socket in the home folder."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self._is_socket = "://" not in url
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        split = urlsplit(url)
        self._below = "" if self._is_socket else split.path.rstrip("/")
        self._place = (split.hostname or "", split.port)
        self._tls = ssl.create_default_context() if split.scheme == "https" else None
        # Connections of this process that no request uses.
        self._free: list[http.client.HTTPConnection] = []
        self._pid = os.getpid()

    def ask(self, path: str, said: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Return the answer to a request; raises ServerAway and NotDone."""
        body = json.dumps(said, default=str).encode()
        connection = self._kept()
        is_new, is_sent = connection is None, False
        connection = connection or self._made()
        try:
            connection.timeout = timeout_s
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(timeout_s)
            is_sent = True
            connection.request("POST", self._below + path, body, self._headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            if not is_new and isinstance(error, (ConnectionError, http.client.HTTPException)):
                # The server closed it meanwhile. Every request may be repeated.
                return self.ask(path, said, timeout_s)
            raise ServerAway(self._advice(error), is_in_doubt=is_sent) from error
        if answer.will_close:
            connection.close()
        else:
            self._free.append(connection)
        return self._read(answer.status, text)

    def close(self) -> None:
        """Close the connections that no request uses."""
        while (one := self._kept()) is not None:
            one.close()

    def _kept(self) -> http.client.HTTPConnection | None:
        if self._pid != os.getpid():
            # Those of the parent of a pool's process are the parent's.
            self._free, self._pid = [], os.getpid()
        try:
            return self._free.pop()
        except IndexError:
            return None

    def _made(self) -> http.client.HTTPConnection:
        if self._is_socket:
            return _OverSocket(self.url)
        if self._tls is not None:
            return http.client.HTTPSConnection(*self._place, context=self._tls)
        return http.client.HTTPConnection(*self._place)

    def _read(self, status: int, text: bytes) -> dict[str, Any]:
        if status == http.HTTPStatus.NO_CONTENT:
            return {}
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if status == http.HTTPStatus.OK and isinstance(found, dict):
            return found
        problem = found if isinstance(found, dict) else {}
        kind = str(problem.get("type", "")).rpartition(":")[2]
        told = str(problem.get("detail") or f"it answers {status}, which Minutebook would not")
        if status in (404, 409, 413, 422) and kind:
            raise NotDone(kind, told)
        if status in (401, 403):
            told = f"{told}; {NEW_TOKEN}" if status == http.HTTPStatus.UNAUTHORIZED else told
        raise ServerAway(f"{self.url}: {told}", is_in_doubt=kind not in NOTHING_DONE)

    def _advice(self, error: Exception) -> str:
        text = f"{self.url} does not answer: {type(error).__name__}: {error}"
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"{text}; set SSL_CERT_FILE to the certificate of its authority"
        if self._is_socket:
            return f"{text}; start `minutebook up` here, or set {URL} and {TOKEN}"
        return f"{text}; check {URL}, and whether `minutebook web` runs there"


class NowhereServer(Server):
    """No server: one is named in a way that cannot work."""

    def __init__(self, why: str) -> None:
        super().__init__("no server")
        self._why = why

    def ask(self, *_given: Any, **_named: Any) -> dict[str, Any]:
        """Raise ServerAway, with what is wrong and what to do."""
        raise ServerAway(self._why)


class _OverSocket(http.client.HTTPConnection):
    """A connection to a socket in a folder."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.settimeout(self.timeout)
            with _short(self._path) as path:
                opened.connect(path)
        except BaseException:
            opened.close()
            raise
        self.sock = opened


@contextmanager
def _short(path: str) -> Iterator[str]:
    """Yield a path that is short enough: Linux names an open folder by a number."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


def find_server(
    url: str | None,
    token: str | None,
    home: str | os.PathLike[str] | None,
    environ: Mapping[str, str] = os.environ,
) -> Server:
    """Return the server of the arguments, of the environment, or of the home folder.

    One that is named wrongly answers nothing, so that no task begins.
    """
    url = url or environ.get(URL) or ""
    if not url:
        folder = Path(home or environ.get(HOME) or DEFAULT_HOME).absolute()
        return Server(str(folder / SOCKET))
    split = urlsplit(url)
    if split.scheme not in ("http", "https") or not split.hostname:
        return NowhereServer(f"{URL} {url!r} is no URL of a server; write http://host:8265")
    token = token or environ.get(TOKEN) or ""
    if not token:
        return NowhereServer(f"{TOKEN} is missing for {url}: run {NEW_TOKEN}")
    return Server(url.rstrip("/"), token)
