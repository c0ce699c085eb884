"""The child process in which Apprise sends one message, by the HTTP client that it brings.

In this process that client follows no redirect, uses no proxy, and reads a part of each answer; no
socket of any library connects to an address that may not be asked.
"""

import logging
import sys
from typing import Any

import apprise
import requests

from runtime.egress.addresses import is_public
from tasks.bounded.child import Call

MOST_READ = 1 << 20
_CONNECTING = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_SEND = requests.Session.send
# Its plug-ins are loaded with the first URL: here, before the limits hold.
apprise.Apprise.instantiate("json://localhost")


def send(call: Call) -> dict[str, Any]:
    """Send the call's message; return whether its URL is known, and why it was not taken if so."""
    its = call.arguments
    heard = _Heard()
    _confine(heard, allow_private=its["allow_private"])
    service = apprise.Apprise.instantiate(its["url"])
    if service is None:
        return {"is_known": False}
    service.overflow_mode = apprise.OverflowMode.TRUNCATE
    is_taken = service.notify(
        title=its["title"],
        body=its["text"],
        notify_type=apprise.NotifyType.SUCCESS if its["is_good"] else apprise.NotifyType.FAILURE,
        body_format=apprise.NotifyFormat.TEXT,
    )
    return {"is_known": True, "why": None if is_taken else heard.why}


class _Heard(logging.Handler):
    """Keeps why a message was not taken: our reason, or else the last line of Apprise."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.line = "the service did not take it"
        self.reason = ""

    @property
    def why(self) -> str:
        """The reason."""
        return self.reason or self.line

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line of Apprise."""
        self.line = record.getMessage().strip()


def _confine(heard: _Heard, *, allow_private: bool) -> None:
    """Let no library here do what our own client would not; its lines, with URLs, reach no log."""
    logging.getLogger().addHandler(logging.NullHandler())
    logger = logging.getLogger("apprise")
    logger.propagate = False
    logger.addHandler(heard)

    def send_once(session: Any, request: Any, **options: Any) -> requests.Response:
        response = _SEND(session, request, **{**options, "stream": True, "proxies": {}})
        if 300 <= response.status_code < 400:
            heard.reason = f"the service answered {response.status_code}, a redirect"
            raise requests.TooManyRedirects(heard.reason)
        response._content = _start_of(response)
        return response

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CONNECTING and not _is_public(arguments[1]):
            heard.reason = (
                "it leads to a private address; SCHED_HOOK_ALLOW_PRIVATE=true allows that"
            )
            raise PermissionError(heard.reason)

    requests.Session.get_redirect_target = lambda *_: None  # type: ignore[method-assign]
    requests.Session.send = send_once  # type: ignore[assignment,method-assign]
    if not allow_private:
        sys.addaudithook(check)


def _start_of(response: requests.Response) -> bytes:
    """Return the body, or as much as is read of it."""
    body = bytearray()
    with response:
        for piece in response.iter_content(1 << 16):
            body += piece
            if len(body) >= MOST_READ:
                break
    return bytes(body)


def _is_public(address: Any) -> bool:
    """Return whether a socket's address is public; a name was not looked up, a path is none."""
    try:
        return address is None or is_public(address[0])
    except (TypeError, ValueError):
        return False
