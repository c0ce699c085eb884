"""Call a URL: a webhook by a signed POST, or a ping; with a time limit, to a checked address.

If the target refers to a secret URL, no error and no log line contains a part of it.
"""

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from models.notices import PINGS, Target, shown_target
from models.store.notices import Notice
from models.values.references import is_reference
from runtime.clock import utc_now
from runtime.config import Settings
from runtime.egress.request import Request, RequestFailed, status_of
from runtime.references import OF_SETTINGS, SecretMissing, resolved
from runtime.sections import HookSettings
from runtime.urls import check_web_url
from tasks.outgoing.failures import Undelivered

SIGNATURE = "Minutebook-Signature"
PRIVATE = "SCHED_HOOK_ALLOW_PRIVATE"
# 4xx answers after which the request is repeated.
TRY_AGAIN = frozenset({408, 429})


def call(notice: Notice, settings: Settings, *, is_own: bool) -> None:
    """Send a webhook's payload, or a ping by the method that its kind names.

    A 2xx answer means delivered, and the answer's body is never read. `is_own`: an admin named the
    target, in the settings; a small app's hooks go where it may. Raises Undelivered: permanent for
    any 4xx but 408 and 429, for private addresses and for a reference to something other than a
    URL; and SecretMissing. Redirects are not followed. Takes no longer than SCHED_HOOK_TIMEOUT_S,
    whatever the receiver does.
    """
    target, host = notice.target, shown_target(notice.target)
    url = _url(target, settings, is_own=is_own)
    asked = _ping(target, url) if target.kind in PINGS else _webhook(notice, url, settings.hook)
    request = replace(asked, allow_private=settings.hook.allow_private, setting=PRIVATE)
    try:
        status = status_of(request, settings.hook.timeout_s)
    except RequestFailed as error:
        raise Undelivered(f"{host}: {error}", permanent=error.permanent) from None
    _check_status(status, host)


def _url(target: Target, settings: Settings, *, is_own: bool) -> str:
    if not is_reference(target.to):
        return target.to
    url = resolved(target.to, OF_SETTINGS if is_own else settings.secrets)
    try:
        check_web_url(url)
    except ValueError:
        text = f"{target.to} holds no http or https URL; store one there, such as https://…"
        raise Undelivered(text, permanent=True) from None
    return url


def _ping(target: Target, url: str) -> Request:
    body = b"" if target.kind == "POST" else None
    # The URL is a secret by itself: anyone with it can ping.
    return Request(url, name=shown_target(target), method=target.kind, body=body)


def _webhook(notice: Notice, url: str, settings: HookSettings) -> Request:
    payload = {"id": str(notice.id), **notice.payload}
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(notice.id)}
    app = str(payload.get("small_app", ""))
    if secrets := secrets_of(settings, app):
        headers[SIGNATURE] = signature(secrets, app, url, body, utc_now())
    name = shown_target(notice.target) if is_reference(notice.target.to) else None
    return Request(url, headers, name, "POST", body)


def _check_status(status: int, host: str) -> None:
    """Raise Undelivered unless the answer's status means that it was taken."""
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        text = f"{host} answered {status}, a redirect; write the URL that it leads to"
        raise Undelivered(text)
    is_refused = 400 <= status < 500 and status not in TRY_AGAIN
    raise Undelivered(f"{host} answered {status}", permanent=is_refused)


def secrets_of(settings: HookSettings, app: str) -> list[str]:
    """Return the secrets that sign webhooks of a small app: the present one, then the old one.

    Each is the hex HMAC-SHA256 of the app's name under a secret of the settings. Raises
    SecretMissing.
    """
    given = (settings.secret.get_secret_value(), settings.old_secret.get_secret_value())
    try:
        roots = [resolved(text, OF_SETTINGS) for text in given]
    except SecretMissing as error:
        raise SecretMissing(f"SCHED_HOOK_SECRET: {error}") from None
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
