"""How a message leaves: by SMTP over one connection, or as an `.eml` file in a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Protocol

from runtime.config import Settings
from small_apps.mail.failures import MailRefused, MailServerFailed
from small_apps.mail.payload import payload_of
from small_apps.mail.smtp import Server, SmtpTransport

__all__ = [
    "FolderTransport", "MailRefused", "MailServerFailed", "Transport", "open_transport", "probe",
]  # fmt: skip


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
        yield _folder(settings)
        return
    transport = SmtpTransport(Server.of_url(url), settings.mail.timeout_s, settings.mail.max_bytes)
    try:
        yield transport
    except BaseException:
        # In the middle of a message the server would not answer a goodbye.
        transport.drop()
        raise
    transport.close()


def probe(settings: Settings, timeout_s: float) -> str:
    """Return where mail goes, after a look whether it can go there; no mail is sent.

    Raises MailServerFailed.
    """
    url = settings.smtp_url.get_secret_value()
    if not url:
        return _folder(settings).probe()
    transport = SmtpTransport(Server.of_url(url), timeout_s, settings.mail.max_bytes)
    try:
        return transport.probe()
    finally:
        transport.close()


def _folder(settings: Settings) -> "FolderTransport":
    return FolderTransport(settings.home / "mail", settings.mail.max_bytes)


@dataclass(frozen=True, slots=True)
class FolderTransport:
    """Writes each message to `folder`, in a file named by its Message-ID: again is over itself."""

    folder: Path
    max_bytes: int

    def send(self, message: EmailMessage) -> None:
        """Write the message whole, or not at all."""
        content = payload_of(message, self.max_bytes).content
        file = self.folder / (str(message["Message-ID"]).strip("<>").replace("/", "_") + ".eml")
        part = file.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as stream:
                stream.write(content)
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
        return f"wrote {count} message{'' if count == 1 else 's'} to {self.folder}"
