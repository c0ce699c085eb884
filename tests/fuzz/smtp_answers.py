"""Fuzzed answers of a mail server: pieces between `%%` lines, one for each thing it is told."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime

from runtime.clock import monotonic
from tasks.outgoing.failures import MailRefused, MailServerFailed
from tasks.outgoing.mail.message import Content, Envelope, build_message
from tasks.outgoing.mail.smtp import LONGEST_SAID, SmtpTransport
from tests.hostile.raw_server import raw_server

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
SECRET = "PASSW0RD"
BETWEEN = b"\n%%\n"
TIMEOUT_S = 1.0
# Greeting, EHLO, HELO, three ways to log in of two steps each, MAIL, RCPT, DATA, text, RSET, QUIT.
MOST_ANSWERS = 16


@contextmanager
def opened() -> Iterator[Callable[[bytes], None]]:
    """Yield the check of a mail server's answers."""
    script: list[list[bytes]] = [[]]

    def speaks(connection: socket.socket, _over: threading.Event) -> None:
        for answer in script[0]:
            connection.sendall(answer.replace(b"\n", b"\r\n") + b"\r\n")
            if not connection.recv(65_536):
                return

    with raw_server(speaks) as port:
        urls = [f"smtp://{account}127.0.0.1:{port}" for account in ("", f"ann:{SECRET}@")]

        def check(given: bytes) -> None:
            script[0] = given.split(BETWEEN)
            for url in urls:
                _sends(url)

        yield check


def _sends(url: str) -> None:
    """Send two messages; each is taken or refused, in the time that the answers have."""
    began = monotonic()
    with closing(SmtpTransport(url, TIMEOUT_S)) as transport:
        for _ in range(2):
            with suppress(MailServerFailed, MailRefused):
                _send(transport)
    # A broken connection is tried once more for each message.
    took = monotonic() - began
    assert took < 4 * MOST_ANSWERS * TIMEOUT_S, f"{took:.0f} s"


def _send(transport: SmtpTransport) -> None:
    envelope = Envelope("mb@example.com", "ann@example.com", None, "<1.send@example.com>", NOW)
    try:
        transport.send(build_message(Content("Hello", "text"), envelope))
    except (MailServerFailed, MailRefused) as error:
        assert SECRET not in str(error), "the password is in the error"
        assert len(str(error)) < 2 * LONGEST_SAID
        raise
