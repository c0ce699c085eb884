"""A real SMTP server that takes, refuses, defers or drops, by the local part of the address."""

import logging
from asyncio import Event, WriteTransport
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from ssl import SSLContext
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from tests.servers import free_port

# It tells each byte; a log of another test that is closed would complain of each.
logging.getLogger("mail.log").setLevel(logging.WARNING)


@dataclass
class MailServer:
    """The server's URL and what it took; what it does to a recipient, by the local part."""

    url: str = ""
    took: list[tuple[str, Message]] = field(default_factory=list)
    sessions: int = 0
    # Answers at MAIL to any sender, at RCPT, and at the end of DATA, where not "250 OK".
    sender_answer: str | None = None
    answers: dict[str, str] = field(default_factory=dict)
    data_answers: dict[str, str] = field(default_factory=dict)
    # Ends the connection within the message, or after the final dot, the message taken or not.
    drops_within: set[str] = field(default_factory=set)
    drops: set[str] = field(default_factory=set)
    takes_and_drops: set[str] = field(default_factory=set)
    # Never answers, at RCPT or at the end of DATA.
    hangs_at_rcpt: set[str] = field(default_factory=set)
    hangs: set[str] = field(default_factory=set)
    # So many messages, then 421.
    most_in_session: int | None = None
    # Called once a message is taken, before its sender is told so.
    on_taken: Callable[[str], None] = lambda _address: None

    @property
    def recipients(self) -> list[str]:
        """Return who was sent something, in order."""
        return [address for address, _message in self.took]


class _Handler:
    def __init__(self, server: MailServer) -> None:
        self.server = server
        self.taken: dict[Session, int] = {}

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
        self.taken[session] = 0
        return responses

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any
    ) -> str:
        most = self.server.most_in_session
        if most is not None and self.taken[session] >= most:
            cast(WriteTransport, server.transport).write(b"421 enough for now\r\n")
            cast(WriteTransport, server.transport).close()
            return "421 enough for now"
        if self.server.sender_answer is not None:
            return self.server.sender_answer
        envelope.mail_from, envelope.mail_options = address, options
        return "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: Any
    ) -> str:
        if _local(address) in self.server.hangs_at_rcpt:
            await Event().wait()
        answer = self.server.answers.get(_local(address))
        if answer is not None:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        address = envelope.rcpt_tos[0]
        if _local(address) in self.server.hangs:
            await Event().wait()
        answer = self.server.data_answers.get(_local(address))
        if answer is not None:
            return answer
        if _local(address) in self.server.drops:
            cast(WriteTransport, server.transport).abort()
            return "421 gone"
        content = envelope.original_content or b""
        self.server.took.append((address, message_from_bytes(content, policy=default)))
        self.taken[session] += 1
        self.server.on_taken(address)
        if _local(address) in self.server.takes_and_drops:
            cast(WriteTransport, server.transport).abort()
        return "250 OK"


class _Smtp(SMTP):
    async def smtp_DATA(self, arg: str) -> None:  # noqa: N802
        handler = cast(_Handler, self.event_handler)
        addresses = [] if self.envelope is None else self.envelope.rcpt_tos
        if any(_local(address) in handler.server.drops_within for address in addresses):
            await self.push("354 go on")
            await self._reader.readline()
            cast(WriteTransport, self.transport).abort()
            return
        await super().smtp_DATA(arg)


class _Controller(Controller):
    def factory(self) -> SMTP:
        return _Smtp(self.handler, **self.SMTP_kwargs)


@contextmanager
def mail_server(
    user: str | None = None,
    password: str = "",
    *,
    scheme: str = "smtp",
    tls: SSLContext | None = None,
    **options: Any,
) -> Iterator[MailServer]:
    """Yield a running server on a loopback port, which asks for `user` when one is given.

    `tls` is used from the start (`smtps`) or after STARTTLS, which is then required.
    """
    server = MailServer()

    def authenticate(*given: Any) -> AuthResult:
        data = given[-1]
        good = (data.login, data.password) == ((user or "").encode(), password.encode())
        return AuthResult(success=good, handled=False)

    if user is not None:
        options |= {
            "authenticator": authenticate,
            "auth_required": False,
            "auth_require_tls": tls is not None and scheme != "smtps",
        }
    if scheme == "smtps":
        options["ssl_context"] = tls
    elif tls is not None:
        options |= {"tls_context": tls, "require_starttls": True}
    port = free_port()
    controller = _Controller(_Handler(server), hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        login = f"{user}:{password}@" if user is not None else ""
        server.url = f"{scheme}://{login}127.0.0.1:{port}"
        yield server
    finally:
        controller.stop()


def _local(address: str) -> str:
    return address.partition("@")[0]
