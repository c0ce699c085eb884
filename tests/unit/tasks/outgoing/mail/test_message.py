from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest

from tasks.outgoing.mail.message import (
    Content,
    Envelope,
    InvalidAddress,
    build_message,
)

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def envelope(
    address: str = "ann@example.com", name: str | None = "Ann", sender: str = "mb@example.com"
) -> Envelope:
    return Envelope(sender, address, name, "<1.send@example.com>", NOW)


def test_headers_and_both_bodies() -> None:
    built = build_message(Content("Hello", "text", "<p>html</p>"), envelope())

    message = message_from_bytes(built.as_bytes(), policy=default)
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
        "", "ann", "ann@", "@example.com", "ann@example.com\nBcc: eve@example.com",
        "ann@example.com, eve@example.com", "a b@example.com",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidAddress):
        build_message(Content("Hello", "text"), envelope(address=address))


def test_names_and_subjects_of_any_language() -> None:
    raw = build_message(Content("Übersicht ✓", "größer"), envelope(name="Chloé, Ms")).as_bytes()

    message = message_from_bytes(raw, policy=default)
    assert message["Subject"] == "Übersicht ✓"
    assert message["To"].addresses[0].display_name == "Chloé, Ms"


def with_headers(**more: Any) -> EmailMessage:
    raw = build_message(Content("Hello", "text"), replace(envelope(), **more)).as_bytes()
    message = message_from_bytes(raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def test_senders_may_have_names_and_replies_go_where_they_are_asked_to() -> None:
    message = with_headers(reply_to="Help <help@example.com>", sender="Minutebook <mb@example.com>")

    assert message["Reply-To"] == "Help <help@example.com>"
    assert message["From"] == "Minutebook <mb@example.com>"


@pytest.mark.parametrize(
    "more",
    [{"reply_to": "help@example.com\r\nBcc: eve@example.com"}, {"message_id": "<a@b>\nBcc: x"}],
)
def test_no_part_of_an_envelope_can_carry_anything_else(more: dict[str, str]) -> None:
    with pytest.raises((InvalidAddress, ValueError), match=r"message id|address"):
        with_headers(**more)


def test_a_message_id_is_never_folded() -> None:
    long = f"<{'1' * 80}@{'a' * 60}.example.com>"

    raw = build_message(Content("s", "t"), replace(envelope(), message_id=long)).as_bytes()

    assert f"Message-ID: {long}\r\n".encode() in raw
