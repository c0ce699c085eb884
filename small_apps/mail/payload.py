"""A message as bytes within the size limit, with the two addresses for SMTP."""

from dataclasses import dataclass
from email.generator import BytesGenerator
from email.message import EmailMessage
from io import BytesIO

from small_apps.mail.failures import MailRefused
from small_apps.mail.message import POLICY


@dataclass(frozen=True, slots=True)
class Payload:
    """A message on the wire; `is_utf8`: an address needs the server's SMTPUTF8."""

    sender: str
    recipient: str
    content: bytes
    is_utf8: bool


def payload_of(message: EmailMessage, max_bytes: int) -> Payload:
    """Return the message's bytes. Raises MailRefused if they are more than `max_bytes`."""
    sender, recipient = (_address(message, name) for name in ("From", "To"))
    is_utf8 = not (sender + recipient).isascii()
    policy = POLICY.clone(utf8=True) if is_utf8 else POLICY
    stream = BytesIO()
    BytesGenerator(stream, policy=policy).flatten(message)
    content = stream.getvalue()
    if len(content) > max_bytes:
        text = f"a message of {len(content):,} bytes; SCHED_MAIL_MAX_BYTES allows {max_bytes:,}"
        raise MailRefused(text, permanent=True)
    return Payload(sender, recipient, content, is_utf8)


def _address(message: EmailMessage, name: str) -> str:
    return str(message[name].addresses[0].addr_spec)
