"""One message for one recipient: text, perhaps HTML, and headers that nothing can break out of."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr

LONGEST_SUBJECT = 250
_MESSAGE_ID = re.compile(r"<[A-Za-z0-9._-]+@[A-Za-z0-9._-]+>")


class InvalidAddress(ValueError):
    """An address cannot stand in a header."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a message says: rendered, not yet bound to a recipient."""

    subject: str
    text: str
    html: str | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """Who a message is from and to, and what makes it the same message when it is sent again."""

    sender: str
    address: str
    name: str | None
    message_id: str
    sent_at: datetime


def build_message(content: Content, envelope: Envelope) -> EmailMessage:
    """Return the message, ready for SMTP.

    Line breaks and control characters in the subject become spaces. Raises InvalidAddress, and
    ValueError for a message id that is not `<letters@domain>`.
    """
    if _MESSAGE_ID.fullmatch(envelope.message_id) is None:
        raise ValueError(f"message id {envelope.message_id!r}")
    message = EmailMessage(policy=SMTP)
    message["From"] = parse_address(envelope.sender)
    message["To"] = parse_address(envelope.address, envelope.name)
    message["Subject"] = one_line(content.subject)
    message["Date"] = format_datetime(envelope.sent_at)
    message["Message-ID"] = envelope.message_id
    # RFC 3834: nobody's holiday notice answers a machine.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(content.text)
    if content.html is not None:
        message.add_alternative(content.html, subtype="html")
    return message


def parse_address(written: str, name: str | None = None) -> Address:
    """Return the address that `written` holds (`ann@example.com` or `Ann <ann@example.com>`).

    `name` is shown instead of the one that is written. Raises InvalidAddress.
    """
    shown, bare = parseaddr(written)
    is_alone = written.strip() == bare or written.strip().endswith(f"<{bare}>")
    if "@" not in bare or not is_alone or _has_controls(written):
        raise InvalidAddress(f"{written!r} is not an e-mail address")
    try:
        return Address(display_name=one_line(name if name is not None else shown), addr_spec=bare)
    except (ValueError, IndexError, HeaderParseError) as error:
        raise InvalidAddress(f"{written!r} is not an e-mail address: {error}") from None


def one_line(text: str) -> str:
    """Return `text` with line breaks, control characters and runs of spaces as single spaces."""
    flat = "".join(" " if _is_control(char) else char for char in text)
    return " ".join(flat.split())[:LONGEST_SUBJECT]


def _has_controls(text: str) -> bool:
    return any(_is_control(char) for char in text)


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}
