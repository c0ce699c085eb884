"""Mails: their headers and bodies; and names, subjects and addresses that try to add others."""

import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.outgoing.mail import message as messages
from tasks.outgoing.mail.message import Content, Envelope, InvalidAddress, build_message

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
PAYLOADS = [
    "=?utf-8?q?x=0D=0ABcc:_evil=40x.example?=",
    "=?utf-8?q?x=0D=0A=0D=0AThe_body?=",
    "=?UTF-8?B?eA0KQmNjOiBldmlsQHguZXhhbXBsZQ==?=",
    "=?us-ascii*en?Q?x=0ABcc:_evil=40x.example?=",
    "=?utf-8?q?a?= =?utf-8?q?=0D=0ABcc:_evil=40x.example?=",
    "=?utf-8?q?=22_=3Cevil=40x.example=3E,?=",
    *(f"x{end}Bcc: evil@x.example" for end in ("\r\n", "\n", "\r", "\u2028", "\x0b", "\0")),
    "=?=?=?=?=?=?=?=?=?=?=0D=0A\u00a1\u00a1\U00010000",
    '", evil@x.example, "',
    "Ann <evil@x.example>",
]
PARTS = ("=?", "?=", "utf-8", "?q?", "?b?", "=0D=0A", "Bcc: e@x.example", "\r\n", *'<>",')
HOSTILE = st.lists(st.sampled_from(PARTS) | st.text(max_size=5), max_size=12).map("".join)
ANN = Envelope("mb@example.com", "ann@example.com", "Ann", "<1.send@example.com>", NOW)
HELLO = Content("Hello", "text")


def sent(content: Content = HELLO, **envelope: Any) -> bytes:
    return build_message(content, replace(ANN, **envelope)).as_bytes()


def read(content: bytes) -> EmailMessage:
    message = message_from_bytes(content, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def test_headers_and_both_bodies() -> None:
    message = read(sent(Content("Hello", "text", "<p>html</p>")))

    assert message["From"] == "mb@example.com"
    assert message["To"] == "Ann <ann@example.com>"
    assert message["Message-ID"] == "<1.send@example.com>"
    assert message["Date"] == "Mon, 23 Nov 2026 06:00:00 +0000"
    assert message["Auto-Submitted"] == "auto-generated"
    assert [part.get_content_type() for part in message.walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]


@pytest.mark.parametrize(
    "address",
    [
        *("", "ann", "ann@", "a b@example.com", "ann@example.com, eve@example.com"),
        "ann@example.com\nBcc: eve@example.com",
    ],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidAddress):
        sent(address=address)


def test_names_and_subjects_of_any_language() -> None:
    message = read(sent(Content("Übersicht ✓", "größer"), name="Chloé, Ms"))

    assert message["Subject"] == "Übersicht ✓"
    assert message["To"].addresses[0].display_name == "Chloé, Ms"


def test_senders_may_have_names_and_replies_go_where_they_are_asked_to() -> None:
    reply_to, sender = "Help <help@example.com>", "Minutebook <mb@example.com>"

    message = read(sent(reply_to=reply_to, sender=sender))

    assert (message["Reply-To"], message["From"]) == (reply_to, sender)


@pytest.mark.parametrize(
    "more",
    [{"reply_to": "help@example.com\r\nBcc: eve@example.com"}, {"message_id": "<a@b>\nBcc: x"}],
)
def test_no_part_of_an_envelope_can_carry_anything_else(more: dict[str, Any]) -> None:
    with pytest.raises((InvalidAddress, ValueError), match=r"message id|address"):
        sent(**more)


def test_a_message_id_is_never_folded() -> None:
    long = f"<{'1' * 80}@{'a' * 60}.example.com>"

    assert f"Message-ID: {long}\r\n".encode() in sent(message_id=long)


def check(content: bytes) -> None:
    """Check that the message has its own headers, its recipient and its text, and no more."""
    message = read(content)
    assert message.keys() == [
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted",
        "Content-Type", "Content-Transfer-Encoding", "MIME-Version",
    ]  # fmt: skip
    assert [one.addr_spec for one in message["To"].addresses] == ["ann@example.com"]
    assert message.get_content() == "text\r\n"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_name_or_a_subject_adds_nothing(payload: str) -> None:
    for name, subject in ((payload, "Hello"), ("Ann", payload)):
        with suppress(InvalidAddress):
            check(sent(Content(subject, "text"), name=name))


@settings(max_examples=50)
@given(name=HOSTILE, subject=HOSTILE)
def test_no_name_and_no_subject_adds_anything(name: str, subject: str) -> None:
    with suppress(InvalidAddress):
        check(sent(Content(subject, "text"), name=name))


@pytest.mark.parametrize("payload", PAYLOADS[:4])
def test_what_the_library_lets_through_is_refused(
    monkeypatch: pytest.MonkeyPatch, payload: str
) -> None:
    """The wall behind the wall: without our own rule for encoded words, nothing is smuggled.

    Whether the library decodes such a word depends on Python's version.
    """
    monkeypatch.setattr(messages, "_ENCODED_WORD", re.compile("(?!)"))

    with suppress(InvalidAddress):
        check(sent(Content(payload, "text")))


def test_an_encoded_word_is_shown_as_it_is_written() -> None:
    message = read(sent(Content("a =?utf-8?q?b?= c", "text")))

    assert message["Subject"] == "a = ?utf-8?q?b?= c"
