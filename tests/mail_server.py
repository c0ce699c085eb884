"""A real SMTP server that takes, refuses, defers or drops, by the local part of the address."""

import logging
from asyncio import WriteTransport
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from tests.servers import free_port

# It tells each byte; a log of another test that is closed would complain of each.
logging.getLogger("mail.log").setLevel(logging.WARNING)


@dataclass
class MailServer:
    """The server's URL and what it took; its answers by the recipient's local part."""

    url: str = ""
    took: list[tuple[str, Message]] = field(default_factory=list)
    sessions: int = 0
    # Local parts: answered with this line at RCPT, or dropped in the middle of DATA.
    answers: dict[str, str] = field(default_factory=dict)
    drops: set[str] = field(default_factory=set)

    @property
    def recipients(self) -> list[str]:
        """Return who was sent something, in order."""
        return [address for address, _message in self.took]


class _Handler:
    def __init__(self, server: MailServer) -> None:
        self.server = server

    async def handle_EHLO(  # noqa: N802
        self,
        _server: SMTP,
        session: Session,
        _envelope: Envelope,
        hostname: str,
        responses: list[str],
    ) -> list[str]:
        session.host_name = hostname
        self.server.sessions += 1
        return responses

    async def handle_RCPT(  # noqa: N802
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: Any
    ) -> str:
        answer = self.server.answers.get(address.partition("@")[0])
        if answer is not None:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        address = envelope.rcpt_tos[0]
        if address.partition("@")[0] in self.server.drops:
            cast(WriteTransport, server.transport).abort()
            return "421 gone"
        content = envelope.original_content or b""
        self.server.took.append((address, message_from_bytes(content, policy=default)))
        return "250 OK"


@contextmanager
def mail_server(user: str | None = None, password: str = "") -> Iterator[MailServer]:
    """Yield a running server on a loopback port, which asks for `user` when one is given."""
    server = MailServer()

    def authenticate(*given: Any) -> AuthResult:
        data = given[-1]
        good = (data.login, data.password) == ((user or "").encode(), password.encode())
        return AuthResult(success=good, handled=False)

    options: dict[str, Any] = {}
    if user is not None:
        options = {
            "authenticator": authenticate,
            "auth_required": False,
            "auth_require_tls": False,
        }
    port = free_port()
    controller = Controller(_Handler(server), hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        login = f"{user}:{password}@" if user is not None else ""
        server.url = f"smtp://{login}127.0.0.1:{port}"
        yield server
    finally:
        controller.stop()
