"""A message as bytes within the size limit, with the two addresses for SMTP."""

import re
from dataclasses import dataclass
from email.generator import BytesGenerator
from email.message import EmailMessage
from email.parser import HeaderParser
from email.policy import compat32, default
from io import BytesIO
from typing import Any

from tasks.outgoing.mail.failures import MailRefused
from tasks.outgoing.mail.message import POLICY

MOST_BYTES = 10 * 2**20
UNUSUAL = "a name or the subject cannot be written as a header; write it more plainly"
_BARE_BREAK = re.compile(rb"(?<!\r)\n|\r(?!\n)")


@dataclass(frozen=True, slots=True)
class Payload:
    """A message on the wire; `is_utf8`: an address needs the server's SMTPUTF8."""

    sender: str
    recipient: str
    content: bytes
    is_utf8: bool


def payload_of(message: EmailMessage) -> Payload:
    """Return the message's bytes.

    Raises MailRefused if they are more than `MOST_BYTES`, or if a reader of the bytes would find
    other headers or addresses than the message has.
    """
    sender, recipient = (_address(message, name) for name in ("From", "To"))
    is_utf8 = not (sender + recipient).isascii()
    policy = POLICY.clone(utf8=True) if is_utf8 else POLICY
    stream = BytesIO()
    try:
        BytesGenerator(stream, policy=policy).flatten(message)
    except Exception:  # unusual names make the library raise errors of many types
        raise MailRefused(UNUSUAL, permanent=True) from None
    content = stream.getvalue()
    if len(content) > MOST_BYTES:
        text = f"a message of {len(content):,} bytes; the most is {MOST_BYTES:,}"
        raise MailRefused(text, permanent=True)
    _check_headers(message, content)
    return Payload(sender, recipient, content, is_utf8)


def _check_headers(message: EmailMessage, content: bytes) -> None:
    """Raise MailRefused unless the bytes have the message's headers, subject and recipient.

    The sender comes from the settings, so only what varies is compared.
    """
    text = content.partition(b"\r\n\r\n")[0].decode()
    read = HeaderParser(policy=compat32).parsestr(text + "\r\n\r\n")
    is_same = (
        _BARE_BREAK.search(content) is None
        and read.keys() == message.keys()
        and all(_is_same(name, read[name], message[name]) for name in ("To", "Subject"))
    )
    if not is_same:
        raise MailRefused(UNUSUAL, permanent=True)


def _is_same(name: str, written: str, given: Any) -> bool:
    """Whether a header as written reads as the given one."""
    if "=?" not in written:
        return _letters(written) == _letters(given)
    try:
        read = default.header_factory(name, written)
    except Exception:  # as above
        return False
    return _letters(read) == _letters(given) and _recipients(read) == _recipients(given)


def _letters(header: object) -> str:
    # Python's parser keeps the spaces between two encoded words.
    return "".join(str(header).split())


def _recipients(header: Any) -> list[str]:
    return [one.addr_spec for one in getattr(header, "addresses", ())]


def _address(message: EmailMessage, name: str) -> str:
    return str(message[name].addresses[0].addr_spec)
