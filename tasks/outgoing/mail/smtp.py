"""SMTP: one connection for many messages, and the meaning of the server's answers.

A 5xx about the recipient or the message is permanent, a 4xx temporary; a 5xx about the sender
concerns all messages. After a 421, which ends a connection, the message is sent again at once over
another one. If a connection breaks without an answer, the server may have accepted the message: a
later attempt repeats it under the same Message-ID.
"""

import io
import smtplib
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import cast
from urllib.parse import unquote, urlsplit

from runtime.clock import monotonic
from runtime.urls import host_and_port
from runtime.visible import visible
from tasks.outgoing.mail.failures import MailRefused, MailServerFailed

PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
# Below the limits at which servers end a connection without a warning.
MESSAGES_PER_CONNECTION = 100
LONGEST_SILENCE_S = 30.0
# This many broken connections in a row are the server's fault, not a message's.
MOST_BREAKS = 3
# Of what a server says, in an error.
LONGEST_SAID = 1_000
LARGEST_ANSWER = 65_536
# A message that the server does not accept for its size (RFC 1870).
TOO_LARGE = 552


class _Answers(io.RawIOBase):
    """What a server says: each answer, of one line or of many, has one time-out and one size."""

    def __init__(self, connection: socket.socket, timeout_s: float) -> None:
        self._socket = connection
        self._timeout_s = timeout_s
        self.begin()

    def begin(self) -> None:
        """Let the next answer begin."""
        self._left = LARGEST_ANSWER
        self._ends_at = monotonic() + self._timeout_s

    def readable(self) -> bool:
        """Return True: the buffer that stands before it asks."""
        return True

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        """Receive some bytes. Raises OSError for an answer that has no end."""
        left_s = self._ends_at - monotonic()
        if left_s <= 0:
            raise TimeoutError(f"no complete answer in {self._timeout_s:g} s")
        if self._left <= 0:
            raise OSError(f"an answer of more than {LARGEST_ANSWER:,} bytes")
        self._socket.settimeout(left_s)
        try:
            size = self._socket.recv_into(buffer)
        finally:
            self._socket.settimeout(self._timeout_s)
        self._left -= size
        return size


class _Client(smtplib.SMTP):
    """A client whose time-out holds for each answer: that of smtplib starts again at each byte."""

    def getreply(self) -> tuple[int, bytes]:
        """Return the code and the text of the next answer."""
        # There is no file at the start, and none after STARTTLS.
        if self.file is None and self.sock is not None:
            self.file = io.BufferedReader(_Answers(self.sock, self.timeout))
        if self.file is not None:
            cast("_Answers", self.file.raw).begin()
        return super().getreply()


class _ClientOverTls(_Client, smtplib.SMTP_SSL):
    """The same over TLS from the first byte."""


class _Broken(Exception):
    """The connection ended; `uncertain`: the server may have accepted the message."""

    def __init__(self, text: str, *, uncertain: bool = False) -> None:
        self.uncertain = uncertain
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Server:
    """An SMTP server and the account on it."""

    scheme: str
    host: str
    port: int
    user: str | None
    password: str = field(repr=False)

    @classmethod
    def of_url(cls, url: str) -> "Server":
        """Return the server of an `smtp`, `smtp+starttls` or `smtps` URL."""
        parts = urlsplit(url)
        return cls(
            scheme=parts.scheme,
            host=parts.hostname or "localhost",
            port=parts.port or PORTS[parts.scheme],
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password or ""),
        )


@dataclass
class SmtpTransport:
    """Sends over one connection; replaces one that is worn, idle for long, or dropped."""

    server: Server
    timeout_s: float
    _client: smtplib.SMTP | None = field(default=None, init=False, repr=False)
    _sent: int = field(default=0, init=False)
    _used_at: float = field(default=0.0, init=False)
    _breaks: int = field(default=0, init=False)

    def send(self, message: EmailMessage) -> None:
        """Send the message to the server.

        Raises MailRefused if this message was not accepted, or possibly not, and MailServerFailed
        if the next one would fail too.
        """
        self._leave_worn()
        while True:
            was_open = self._client is not None
            try:
                self._try(message)
            except _Broken as error:
                if not was_open or error.uncertain:
                    raise self._refusal_of(error) from None
            else:
                self._breaks = 0
                return

    def probe(self) -> str:
        """Return the server as text after a login. Raises MailServerFailed."""
        self._connected()
        return f"sent by {host_and_port(self.server.host, self.server.port)}"

    def told(self, count: int) -> str:
        """Return the number of sent messages and the server as text."""
        return f"sent {count} message{'' if count == 1 else 's'} by {self.server.host}"

    def close(self) -> None:
        """End the connection with QUIT, if there is one."""
        if self._client is not None:
            with suppress(smtplib.SMTPException, OSError):
                self._client.quit()
        self.drop()

    def drop(self) -> None:
        """End the connection without QUIT, if there is one."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _leave_worn(self) -> None:
        is_idle = monotonic() - self._used_at > LONGEST_SILENCE_S
        if self._sent >= MESSAGES_PER_CONNECTION or is_idle:
            self.close()

    def _try(self, message: EmailMessage) -> None:
        """Send over the connection; raises _Broken after dropping it."""
        try:
            _transact(self._connected(), message)
        except _Broken:
            self.drop()
            raise
        except MailRefused:
            # A refusal shows that the connection works.
            self._breaks = 0
            raise
        finally:
            self._sent += 1
            self._used_at = monotonic()

    def _refusal_of(self, error: _Broken) -> MailRefused | MailServerFailed:
        self._breaks += 1
        text = f"the connection broke: {error}"
        if self._breaks >= MOST_BREAKS:
            text = f"{self.server.host}: {self._breaks} connections broke in a row; {error}"
            return MailServerFailed(text)
        if error.uncertain:
            text += "; the server may have accepted the message"
        return MailRefused(text, permanent=False, uncertain=error.uncertain)

    def _connected(self) -> smtplib.SMTP:
        if self._client is None:
            where = host_and_port(self.server.host, self.server.port)
            try:
                self._client = _connect(self.server, self.timeout_s)
            except smtplib.SMTPAuthenticationError as error:
                said = _said(error.smtp_error)
                text = f"{self.server.host} refused the user {self.server.user!r}: {said}"
                raise MailServerFailed(text, permanent=error.smtp_code >= 500) from None
            except UnicodeEncodeError:
                # The error's text would show a character of the password.
                text = f"{self.server.host}: write the user and the password in ASCII characters"
                raise MailServerFailed(text, permanent=True) from None
            except smtplib.SMTPNotSupportedError as error:
                raise MailServerFailed(f"{self.server.host}: {error}", permanent=True) from None
            except (smtplib.SMTPException, OSError) as error:
                raise MailServerFailed(f"{where} cannot be reached: {_reason(error)}") from None
            self._sent, self._used_at = 0, monotonic()
        return self._client


def _connect(server: Server, timeout_s: float) -> smtplib.SMTP:
    client = _greet(server, timeout_s)
    try:
        if server.scheme == "smtp+starttls":
            client.starttls(context=ssl.create_default_context())
        client.ehlo_or_helo_if_needed()
        if server.user is not None:
            client.login(server.user, server.password)
    except BaseException:
        client.close()
        raise
    return client


def _greet(server: Server, timeout_s: float) -> smtplib.SMTP:
    where = (server.host, server.port)
    if server.scheme == "smtps":
        context = ssl.create_default_context()
        return _ClientOverTls(*where, timeout=timeout_s, context=context)
    return _Client(*where, timeout=timeout_s)


def _transact(client: smtplib.SMTP, message: EmailMessage) -> None:
    """Send one message; raises MailRefused, MailServerFailed or _Broken."""
    sender, recipient = (message[name].addresses[0].addr_spec for name in ("From", "To"))
    try:
        client.send_message(message, sender, recipient)
    except smtplib.SMTPSenderRefused as error:
        is_about_sender = error.smtp_code >= 500 and error.smtp_code != TOO_LARGE
        raise _refused(error.smtp_code, error.smtp_error, is_about_sender=is_about_sender) from None
    except smtplib.SMTPRecipientsRefused as error:
        raise _refused(*error.recipients[recipient]) from None
    except smtplib.SMTPDataError as error:
        raise _refused(error.smtp_code, error.smtp_error, is_sent=True) from None
    except smtplib.SMTPNotSupportedError:
        text = "the server accepts only ASCII addresses (no SMTPUTF8)"
        raise MailRefused(text, permanent=True) from None
    except (smtplib.SMTPException, OSError) as error:
        raise _Broken(_reason(error), uncertain=True) from None


def _refused(
    code: int, text: bytes | str, *, is_about_sender: bool = False, is_sent: bool = False
) -> Exception:
    """Return the error of an answer; `is_sent`: the server may have the message's text."""
    said = f"{code} {_said(text)}"
    # 421 is about the connection (often a limit of messages), not about the message.
    if code == 421 or code < 0:
        return _Broken(said, uncertain=is_sent)
    if is_about_sender:
        return MailServerFailed(f"the sender was refused: {said}", permanent=True)
    return MailRefused(said, permanent=code >= 500)


def _reason(error: Exception) -> str:
    return _said(str(error)) or type(error).__name__


def _said(text: bytes | str) -> str:
    """Return what a server says, without characters that hide or reverse what a person reads."""
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    return visible(said[:LONGEST_SAID])
