"""How a message leaves: by SMTP over one connection, or as an `.eml` file in a folder."""

import logging
import os
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from runtime.config import Settings

PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
logger = logging.getLogger("minutehand.mail")


class MailRefused(Exception):
    """One message was not taken; `permanent`: sending it again cannot help."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        self.permanent = permanent
        super().__init__(message)


class MailServerFailed(Exception):
    """The server cannot be used at all: there, or not willing to talk to us."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        self.permanent = permanent
        super().__init__(message)


class _GoneAway(Exception):
    """The server ended the connection."""


class Transport(Protocol):
    """Takes messages one after the other."""

    def send(self, message: EmailMessage) -> None:
        """Hand `message` over; raises MailRefused or MailServerFailed."""

    def told(self, count: int) -> str:
        """Return one sentence about `count` messages handed over."""


@contextmanager
def open_transport(settings: Settings) -> Iterator[Transport]:
    """Yield the transport of the settings; an SMTP connection is made at the first message."""
    url = settings.smtp_url.get_secret_value()
    if not url:
        yield FolderTransport(settings.home / "mail")
        return
    transport = SmtpTransport.of_url(url, settings.mail.timeout_s)
    try:
        yield transport
    finally:
        transport.close()


def probe(settings: Settings, timeout_s: float) -> str:
    """Return where mail goes, after a look whether it can go there; no mail is sent.

    Raises MailServerFailed.
    """
    url = settings.smtp_url.get_secret_value()
    if not url:
        return FolderTransport(settings.home / "mail").probe()
    transport = SmtpTransport.of_url(url, timeout_s)
    try:
        return transport.probe()
    finally:
        transport.close()


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


@dataclass(frozen=True, slots=True)
class FolderTransport:
    """Writes each message to `folder`, in a file named by its Message-ID: again is over itself."""

    folder: Path

    def send(self, message: EmailMessage) -> None:
        """Write the message whole, or not at all."""
        file = self.folder / (str(message["Message-ID"]).strip("<>").replace("/", "_") + ".eml")
        part = file.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as stream:
                stream.write(message.as_bytes())
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(file)
        except OSError as error:
            raise MailServerFailed(f"{self.folder} cannot be written: {error.strerror}") from None

    def probe(self) -> str:
        """Return the folder, which can be written. Raises MailServerFailed."""
        file = self.folder / ".probe"
        if not os.path.lexists(self.folder):
            return f"will be written to {self.folder}"
        try:
            file.write_bytes(b"")
            file.unlink()
        except OSError as error:
            raise MailServerFailed(f"{self.folder} cannot be written: {error.strerror}") from None
        return f"written to {self.folder}"

    def told(self, count: int) -> str:
        """Return how many were written and where."""
        return f"wrote {_messages(count)} to {self.folder}"


@dataclass
class SmtpTransport:
    """Sends over one connection, made anew when the server has dropped it."""

    scheme: str
    host: str
    port: int
    user: str | None
    password: str = field(repr=False)
    timeout_s: float
    _client: smtplib.SMTP | None = field(default=None, init=False, repr=False)

    @classmethod
    def of_url(cls, url: str, timeout_s: float) -> "SmtpTransport":
        """Return the transport of an `smtp`, `smtp+starttls` or `smtps` URL."""
        parts = urlsplit(url)
        return cls(
            scheme=parts.scheme,
            host=parts.hostname or "localhost",
            port=parts.port or PORTS[parts.scheme],
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password or ""),
            timeout_s=timeout_s,
        )

    def send(self, message: EmailMessage) -> None:
        """Hand the message to the server.

        A server that ended the connection since the message before is asked once more. Where a
        connection breaks within a message it is unknown whether the server took it: the message is
        refused for now, and may be sent again under the same Message-ID.
        """
        if self._client is not None:
            try:
                self._send_over(self._client, message)
            except _GoneAway:
                self.close()
            else:
                return
        try:
            self._send_over(self._connected(), message)
        except _GoneAway as error:
            self.close()
            raise MailRefused(f"the connection broke: {error}", permanent=False) from None

    def _send_over(self, client: smtplib.SMTP, message: EmailMessage) -> None:
        try:
            client.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            raise _refusal(*next(iter(error.recipients.values()))) from None
        except smtplib.SMTPResponseException as error:
            raise _refusal(error.smtp_code, error.smtp_error) from None
        except smtplib.SMTPNotSupportedError as error:
            raise MailRefused(str(error), permanent=True) from None
        except (smtplib.SMTPException, OSError) as error:
            raise _GoneAway(str(error)) from None

    def probe(self) -> str:
        """Return the server, which lets us in. Raises MailServerFailed."""
        self._connected()
        return f"sent by {self.host}:{self.port}"

    def told(self, count: int) -> str:
        """Return how many were sent and by which server."""
        return f"sent {_messages(count)} by {self.host}"

    def close(self) -> None:
        """End the connection, if there is one."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(smtplib.SMTPException, OSError):
                client.quit()
            client.close()

    def _connected(self) -> smtplib.SMTP:
        if self._client is None:
            try:
                self._client = self._connect()
            except smtplib.SMTPAuthenticationError as error:
                text = f"{self.host} refused the user {self.user!r}: {_said(error.smtp_error)}"
                raise MailServerFailed(text, permanent=error.smtp_code >= 500) from None
            except smtplib.SMTPNotSupportedError as error:
                raise MailServerFailed(f"{self.host}: {error}", permanent=True) from None
            except (smtplib.SMTPException, OSError) as error:
                text = f"{self.host}:{self.port} cannot be reached: {error}"
                raise MailServerFailed(text) from None
        return self._client

    def _connect(self) -> smtplib.SMTP:
        client = self._greet()
        try:
            if self.scheme == "smtp+starttls":
                client.starttls(context=ssl.create_default_context())
            if self.user is not None:
                client.login(self.user, self.password)
        except BaseException:
            client.close()
            raise
        return client

    def _greet(self) -> smtplib.SMTP:
        if self.scheme == "smtps":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout_s, context=context)
        return smtplib.SMTP(self.host, self.port, timeout=self.timeout_s)


def _refusal(code: int, text: bytes | str) -> Exception:
    # 421 is about the connection (often: so many messages are enough), not about the address.
    if code == 421 or code < 0:
        return _GoneAway(f"{code} {_said(text)}")
    return MailRefused(f"{code} {_said(text)}", permanent=code >= 500)


def _said(text: bytes | str) -> str:
    return text.decode(errors="replace") if isinstance(text, bytes) else text
