"""Names, subjects and addresses that try to add headers, recipients or a body."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default

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


def sent(name: str, subject: str) -> bytes:
    envelope = Envelope("mb@example.com", "ann@example.com", name, "<1.send@example.com>", NOW)
    return build_message(Content(subject, "text"), envelope).as_bytes()


def check(content: bytes) -> None:
    """Check that the message has its own headers, its recipient and its text, and no more."""
    message = message_from_bytes(content, policy=default)
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
            check(sent(name, subject))


@settings(max_examples=50)
@given(name=HOSTILE, subject=HOSTILE)
def test_no_name_and_no_subject_adds_anything(name: str, subject: str) -> None:
    with suppress(InvalidAddress):
        check(sent(name, subject))


@pytest.mark.parametrize("payload", PAYLOADS[:4])
def test_what_the_library_lets_through_is_refused(
    monkeypatch: pytest.MonkeyPatch, payload: str
) -> None:
    """The wall behind the wall: without our own rule for encoded words, nothing is smuggled.

    Whether the library decodes such a word depends on Python's version.
    """
    monkeypatch.setattr(messages, "_ENCODED_WORD", re.compile("(?!)"))

    with suppress(InvalidAddress):
        check(sent("Ann", payload))


def test_an_encoded_word_is_shown_as_it_is_written() -> None:
    message = message_from_bytes(sent("Ann", "a =?utf-8?q?b?= c"), policy=default)

    assert message["Subject"] == "a = ?utf-8?q?b?= c"
