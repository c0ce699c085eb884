"""SMTP: one connection for many messages, and the meaning of the server's answers.

A 5xx about the recipient or the message is permanent, a 4xx temporary; a 5xx about the sender
concerns all messages. If the connection breaks before the message's text is sent, the message is
sent again at once. If it breaks later, the server may have accepted the message: a later attempt
repeats it under the same Message-ID.
"""

import smtplib
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

from runtime.clock import monotonic
from runtime.urls import host_and_port
from runtime.visible import visible
from tasks.outgoing.mail.bounded_smtp import Client, SecureClient
from tasks.outgoing.mail.failures import MailRefused, MailServerFailed
from tasks.outgoing.mail.payload import Payload, payload_of

PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
# Below the limits at which servers end a connection without a warning.
MESSAGES_PER_CONNECTION = 100
LONGEST_SILENCE_S = 30.0
# This many broken connections in a row are the server's fault, not a message's.
MOST_BREAKS = 3


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
        payload = payload_of(message)
        self._leave_worn()
        was_open = self._client is not None
        try:
            self._try(payload)
        except _Broken as error:
            if not was_open or error.uncertain:
                raise self._refusal_of(error) from None
            self._try_anew(payload)
        self._breaks = 0

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

    def _try_anew(self, payload: Payload) -> None:
        try:
            self._try(payload)
        except _Broken as error:
            raise self._refusal_of(error) from None

    def _try(self, payload: Payload) -> None:
        """Send over the connection; raises _Broken after dropping it."""
        try:
            _transact(self._connected(), payload)
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
                raise MailServerFailed(f"{where} cannot be reached: {error}") from None
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
        return SecureClient(*where, timeout=timeout_s, context=context)
    return Client(*where, timeout=timeout_s)


def _transact(client: smtplib.SMTP, payload: Payload) -> None:
    """Send one message; raises MailRefused, MailServerFailed or _Broken."""
    options = _options(client, payload)
    try:
        _expect(client, client.mail(payload.sender, options), is_about_sender=True)
        _expect(client, client.rcpt(payload.recipient))
    except (smtplib.SMTPException, OSError) as error:
        raise _Broken(_reason(error)) from None
    try:
        answer = client.data(payload.content)
    except smtplib.SMTPDataError as error:
        # The server refused before it received the text.
        _expect(client, (error.smtp_code, _said(error.smtp_error).encode()))
        raise _Broken(_reason(error)) from None
    except (smtplib.SMTPException, OSError) as error:
        raise _Broken(_reason(error), uncertain=True) from None
    _expect(client, answer, is_sent=True)


def _options(client: smtplib.SMTP, payload: Payload) -> list[str]:
    """Return the options of MAIL. Raises MailRefused if the server cannot accept the message."""
    options, size = [], client.esmtp_features.get("size", "")
    if size.isdecimal() and 0 < int(size) < len(payload.content):
        text = f"a message of {len(payload.content):,} bytes; the server accepts {int(size):,}"
        raise MailRefused(text, permanent=True)
    if size:
        options.append(f"size={len(payload.content)}")
    if payload.is_utf8:
        if not client.has_extn("smtputf8"):
            text = "the server accepts only ASCII addresses (no SMTPUTF8)"
            raise MailRefused(text, permanent=True)
        options.append("SMTPUTF8")
    if client.has_extn("8bitmime"):
        options.append("BODY=8BITMIME")
    return options


def _expect(
    client: smtplib.SMTP,
    answer: tuple[int, bytes],
    *,
    is_about_sender: bool = False,
    is_sent: bool = False,
) -> None:
    """Raise the error of an answer other than 2xx; `is_sent`: the server has the message's text."""
    code, text = answer[0], f"{answer[0]} {_said(answer[1])}"
    if 200 <= code < 300:
        return
    # 421 is about the connection (often a limit of messages), not about the message.
    if code == 421 or code < 0:
        raise _Broken(text, uncertain=is_sent)
    with suppress(smtplib.SMTPException, OSError):
        client.rset()
    if is_about_sender and code >= 500:
        raise MailServerFailed(f"the sender was refused: {text}", permanent=True)
    raise MailRefused(text, permanent=code >= 500)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _said(text: bytes | str) -> str:
    """Return what a server says, without characters that hide or reverse what a person reads."""
    return visible(text.decode(errors="replace") if isinstance(text, bytes) else text)
