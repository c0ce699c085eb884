"""Signatures of webhooks: each small app (tenant) has a secret of its own."""

import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

from runtime.references import OF_SETTINGS, resolved
from runtime.sections import HookSettings


def secrets_of(settings: HookSettings, app: str) -> list[str]:
    """Return the secrets that sign webhooks of a small app: the present one, then the old one.

    Each is the hex HMAC-SHA256 of the app's name under a secret of the settings. Raises
    SecretMissing.
    """
    given = (settings.secret.get_secret_value(), settings.old_secret.get_secret_value())
    roots = [resolved(text, OF_SETTINGS) for text in given]
    return [_hmac(root, app.encode()) for root in roots if root]


def signature(secrets: Sequence[str], app: str, url: str, body: bytes, now: datetime) -> str:
    """Return `t=<unix seconds>,v1=<hex>`, with one `v1` for each secret.

    Each is the HMAC-SHA256 of the seconds, the app, the URL and the body, on lines of their own.
    """
    seconds = int(now.timestamp())
    signed = f"{seconds}\n{app}\n{url}\n".encode() + body
    return ",".join([f"t={seconds}", *(f"v1={_hmac(secret, signed)}" for secret in secrets)])


def _hmac(secret: str, text: bytes) -> str:
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
