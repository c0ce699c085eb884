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
from email.message import EmailMessage
from typing import Any
from urllib.parse import unquote, urlsplit

from runtime.clock import monotonic
from runtime.urls import host_and_port
from runtime.visible import visible
from tasks.outgoing.failures import MailRefused, MailServerFailed

PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
# Below the limits at which servers end a connection without a warning.
MESSAGES_PER_CONNECTION = 100
LONGEST_SILENCE_S = 30.0
# Of what a server says, in an error.
LONGEST_SAID = 1_000
LARGEST_ANSWER = 65_536
# A message that the server does not accept for its size (RFC 1870).
TOO_LARGE = 552


class _Broken(Exception):
    """The connection ended; `uncertain`: the server may have accepted the message."""

    def __init__(self, text: str, *, uncertain: bool = False) -> None:
        self.uncertain = uncertain
        super().__init__(text)


class _Answers(io.RawIOBase):
    """What a server says: each answer, of one line or of many, has one time-out and one size."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket, self._timeout_s = connection, connection.gettimeout() or 0.0
        self.begin()

    def begin(self) -> None:
        """Let the next answer begin."""
        self._left, self._ends_at = LARGEST_ANSWER, monotonic() + self._timeout_s

    def readable(self) -> bool:
        """Return True: the buffer that stands before it asks."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive some bytes. Raises OSError for an answer that has no end."""
        left_s = self._ends_at - monotonic()
        if left_s <= 0 or self._left <= 0:
            raise OSError(f"no end of an answer in {self._timeout_s:g} s or {LARGEST_ANSWER} bytes")
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
            self.file: Any = io.BufferedReader(_Answers(self.sock))
        if self.file is not None:
            self.file.raw.begin()
        return super().getreply()


class _ClientOverTls(_Client, smtplib.SMTP_SSL):
    """The same over TLS from the first byte."""


class SmtpTransport:
    """Sends over one connection; replaces one that is worn, idle for long, or dropped.

    `url` is an `smtp`, `smtp+starttls` or `smtps` URL, with the account on the server if it needs
    one.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        parts = urlsplit(url)
        self.scheme = parts.scheme
        self.host = parts.hostname or "localhost"
        self.port = parts.port or PORTS[parts.scheme]
        self.timeout_s = timeout_s
        self._user = unquote(parts.username or "")
        self._password = unquote(parts.password or "")
        self._client: smtplib.SMTP | None = None
        self._sent = 0
        self._used_at = 0.0

    def send(self, message: EmailMessage) -> None:
        """Send the message to the server.

        Raises MailRefused if this message was not accepted, or possibly not, and MailServerFailed
        if the next one would fail too.
        """
        is_idle = monotonic() - self._used_at > LONGEST_SILENCE_S
        if self._sent >= MESSAGES_PER_CONNECTION or is_idle:
            self.close()
        was_open = self._client is not None
        client = self._connected()
        self._sent += 1
        self._used_at = monotonic()
        try:
            _send(client, message)
        except _Broken as error:
            self.drop()
            if was_open and not error.uncertain:
                self.send(message)
                return
            maybe = "; the server may have accepted the message" if error.uncertain else ""
            text = f"the connection broke: {error}{maybe}"
            raise MailRefused(text, uncertain=error.uncertain) from None

    def probe(self) -> str:
        """Return the server as text after a login. Raises MailServerFailed."""
        self._connected()
        return f"sent by {host_and_port(self.host, self.port)}"

    def told(self, count: int) -> str:
        """Return the number of sent messages and the server as text."""
        return f"sent {count} message{'' if count == 1 else 's'} by {self.host}"

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

    def _connected(self) -> smtplib.SMTP:
        if self._client is None:
            try:
                self._client = self._connect()
            except smtplib.SMTPAuthenticationError as error:
                text = f"{self.host} refused the user {self._user!r}: {_said(error.smtp_error)}"
                raise MailServerFailed(text, permanent=error.smtp_code >= 500) from None
            except UnicodeEncodeError:
                # The error's text would show a character of the password.
                text = f"{self.host}: write the user and the password in ASCII characters"
                raise MailServerFailed(text, permanent=True) from None
            except smtplib.SMTPNotSupportedError as error:
                raise MailServerFailed(f"{self.host}: {error}", permanent=True) from None
            except (smtplib.SMTPException, OSError) as error:
                where = host_and_port(self.host, self.port)
                raise MailServerFailed(f"{where} cannot be reached: {_reason(error)}") from None
            self._sent, self._used_at = 0, monotonic()
        return self._client

    def _connect(self) -> smtplib.SMTP:
        where = (self.host, self.port)
        tls = None if self.scheme == "smtp" else ssl.create_default_context()
        client = (
            _ClientOverTls(*where, timeout=self.timeout_s, context=tls)
            if self.scheme == "smtps"
            else _Client(*where, timeout=self.timeout_s)
        )
        try:
            if self.scheme == "smtp+starttls":
                client.starttls(context=tls)
            client.ehlo_or_helo_if_needed()
            if self._user:
                client.login(self._user, self._password)
        except BaseException:
            client.close()
            raise
        return client


def _send(client: smtplib.SMTP, message: EmailMessage) -> None:
    """Send one message; raises MailRefused, MailServerFailed or _Broken."""
    sender, recipient = (message[name].addresses[0].addr_spec for name in ("From", "To"))
    try:
        client.send_message(message, sender, recipient)
    except smtplib.SMTPSenderRefused as error:
        raise _refused(error.smtp_code, error.smtp_error, is_about_sender=True) from None
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
    if is_about_sender and code >= 500 and code != TOO_LARGE:
        return MailServerFailed(f"the sender was refused: {said}", permanent=True)
    return MailRefused(said, permanent=code >= 500)


def _reason(error: Exception) -> str:
    return _said(str(error)) or type(error).__name__


def _said(text: bytes | str) -> str:
    """Return what a server says, without characters that hide or reverse what a person reads."""
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    return visible(said[:LONGEST_SAID])
