"""Transports of messages: SMTP over one connection, or `.eml` files in a folder."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path

from runtime.config import Settings
from tasks.outgoing.failures import MailServerFailed
from tasks.outgoing.mail.smtp import SmtpTransport

# How long an SMTP server may take to answer.
ANSWERS_WITHIN_S = 20.0
# The most messages that the folder keeps.
MOST_IN_FOLDER = 10_000


@contextmanager
def open_transport(settings: Settings) -> Iterator["Transport"]:
    """Yield the configured transport; it connects to SMTP at the first message."""
    url = settings.smtp_url.get_secret_value()
    if not url:
        folder = FolderTransport(settings.home / "mail")
        yield folder
        folder.remove_oldest()
        return
    transport = SmtpTransport(url, ANSWERS_WITHIN_S)
    try:
        yield transport
    except BaseException:
        # The server would not answer QUIT in the middle of a message.
        transport.drop()
        raise
    transport.close()


def probe(settings: Settings, timeout_s: float) -> str:
    """Return the destination of mail after testing it without sending. Raises MailServerFailed."""
    url = settings.smtp_url.get_secret_value()
    if not url:
        return f"written to {settings.home / 'mail'}"
    with closing(SmtpTransport(url, timeout_s)) as transport:
        return transport.probe()


@dataclass(frozen=True, slots=True)
class FolderTransport:
    """Writes each message to `folder`, in a file named by Message-ID, which a repeat replaces."""

    folder: Path

    def send(self, message: EmailMessage) -> None:
        """Write the message, whole or not at all."""
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

    def remove_oldest(self) -> None:
        """Remove the oldest messages beyond the most that the folder keeps."""
        # The unfinished ones of killed processes count, and go, as well.
        written = [*self.folder.glob("*.eml"), *self.folder.glob("*.part")]
        if len(written) <= MOST_IN_FOLDER:
            return
        # Another worker may be removing the same, or the folder is read-only by now.
        with suppress(OSError):
            for file in sorted(written, key=lambda one: one.lstat().st_mtime_ns)[:-MOST_IN_FOLDER]:
                file.unlink()

    def told(self, count: int) -> str:
        """Return the number of written messages and their folder as text."""
        return f"wrote {count} message{'' if count == 1 else 's'} to {self.folder}"


Transport = SmtpTransport | FolderTransport
