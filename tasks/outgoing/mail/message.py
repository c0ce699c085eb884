"""One message for one recipient: text, optional HTML, and headers safe from injection."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address, BaseHeader, HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import SMTP, Policy
from email.utils import format_datetime, parseaddr

from tasks.outgoing.failures import MailRefused

LONGEST_SUBJECT = 250
# The library folds a longer one without its quotes.
LONGEST_NAME = 60
UNUSUAL = "a name or the subject cannot be written as a header; write it more plainly"
_LOCAL = re.compile(r"[^\s\"(),:;<>@\[\\\]]+")
# The beginning of an encoded word (RFC 2047), which Python's parser would decode in our values.
_ENCODED_WORD = re.compile(r"=(?=\?)")
# A line of a header that begins another header, or the body.
_NEXT_HEADER = re.compile(r"[\r\n](?![ \t\n])(?=.)", re.DOTALL)
_MESSAGE_ID = re.compile(r"<[A-Za-z0-9._-]+@[A-Za-z0-9._-]+>")


class _WholeHeader(UnstructuredHeader, BaseHeader):
    """An unfolded header: folding would turn a long id into an encoded word."""

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {self}{policy.linesep}"


_FACTORY = HeaderRegistry()
_FACTORY.map_to_type("message-id", _WholeHeader)
# Every server accepts 7 bits.
POLICY = SMTP.clone(header_factory=_FACTORY, cte_type="7bit")


class InvalidAddress(MailRefused):
    """An address, a name or a subject is not valid in a header."""

    def __init__(self, message: str) -> None:
        super().__init__(message, permanent=True)


@dataclass(frozen=True, slots=True)
class Content:
    """The rendered content of a message, without a recipient."""

    subject: str
    text: str
    html: str | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """The sender and recipient of a message, and its id and date, which a repetition keeps."""

    sender: str
    address: str
    name: str | None
    message_id: str
    sent_at: datetime
    reply_to: str | None = None


def build_message(content: Content, envelope: Envelope) -> EmailMessage:
    """Return the message, ready for SMTP.

    Line breaks and control characters in the subject become spaces. Raises InvalidAddress, and
    ValueError for a message id that is not `<letters@domain>`.
    """
    if _MESSAGE_ID.fullmatch(envelope.message_id) is None:
        raise ValueError(f"message id {envelope.message_id!r}")
    sender, to = parse_address(envelope.sender), parse_address(envelope.address, envelope.name)
    is_ascii = (sender.addr_spec + to.addr_spec).isascii()
    message = EmailMessage(policy=POLICY.clone(utf8=not is_ascii))
    message["From"] = sender
    message["To"] = to
    _add_subject(message, content.subject)
    message["Date"] = format_datetime(envelope.sent_at)
    message["Message-ID"] = envelope.message_id
    # RFC 3834: suppresses automatic replies.
    message["Auto-Submitted"] = "auto-generated"
    if envelope.reply_to is not None:
        message["Reply-To"] = parse_address(envelope.reply_to)
    message.set_content(content.text)
    if content.html is not None:
        message.add_alternative(content.html, subtype="html")
    return message


def _add_subject(message: EmailMessage, subject: str) -> None:
    """Add the subject. Raises InvalidAddress if it or the recipient's name is no single header."""
    try:
        message["Subject"] = one_line(subject)
        folded = [message[name].fold(policy=message.policy) for name in ("To", "Subject")]
    except Exception:  # unusual text makes the library raise errors of many types
        raise InvalidAddress(UNUSUAL) from None
    if any(map(_NEXT_HEADER.search, folded)):
        raise InvalidAddress(UNUSUAL)


def parse_address(written: str, name: str | None = None) -> Address:
    """Return the address in `written` (`ann@example.com` or `Ann <ann@example.com>`).

    `name` replaces the written display name. Raises InvalidAddress.
    """
    shown, bare = parseaddr(written)
    is_alone = written.strip() == bare or written.strip().endswith(f"<{bare}>")
    if "@" not in bare or not is_alone or any(map(_is_control, written)):
        raise InvalidAddress(f"{written!r} is not an e-mail address")
    try:
        return _address(one_line(name if name is not None else shown)[:LONGEST_NAME], bare)
    except Exception as error:  # unusual names make the library raise errors of many types
        raise InvalidAddress(f"{written!r} is not an e-mail address: {error}") from None


def _address(shown: str, bare: str) -> Address:
    if bare.isascii():
        return Address(display_name=shown, addr_spec=bare)
    local, _, domain = bare.rpartition("@")
    # Every server accepts the ASCII form of a domain; other letters before the @ need SMTPUTF8.
    domain = domain.encode("idna").decode()
    if local.isascii():
        return Address(display_name=shown, addr_spec=f"{local}@{domain}")
    if _LOCAL.fullmatch(local) is None:
        raise ValueError("a character that needs quotes")
    return Address(display_name=shown, username=local, domain=domain)


def one_line(text: str) -> str:
    """Return `text` with line breaks, control characters and runs of spaces as single spaces.

    An encoded word gets a space after its first character, so that no program decodes it.
    """
    flat = "".join(" " if _is_control(char) else char for char in text)
    return _ENCODED_WORD.sub("= ", " ".join(flat.split()))[:LONGEST_SUBJECT]


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}
