"""Servers outside, as several rooms meet them."""

from collections.abc import Iterator

import pytest

from tests.mail_server import MailServer, mail_server


@pytest.fixture
def smtp() -> Iterator[MailServer]:
    """An SMTP server."""
    with mail_server() as server:
        yield server
