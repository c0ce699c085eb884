"""Secrets hidden in a text that is shown."""

from collections.abc import Iterable
from urllib.parse import quote, quote_plus


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with every secret hidden, even where it is quoted as in a URL."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        for written in (secret, quote(secret, safe=""), quote(secret), quote_plus(secret)):
            text = text.replace(written, "***")
    return text
