"""Send a webhook: one signed POST with a time limit, to a checked address.

If the target refers to a secret URL, no error and no log line contains a part of it.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from models.notices import PINGS, Target, shown_target
from models.references import is_reference
from runtime.clock import utc_now
from runtime.config import Settings
from runtime.egress.request import Request, RequestFailed, status_of
from runtime.references import OF_SETTINGS, SecretMissing, resolved
from runtime.sections import HookSettings
from runtime.urls import check_web_url
from tasks.notices.signing import secrets_of, signature
from tasks.outgoing.failures import Undelivered

SIGNATURE = "Minutebook-Signature"
PRIVATE = "SCHED_HOOK_ALLOW_PRIVATE"
# 4xx answers after which the POST is retried.
TRY_AGAIN = frozenset({408, 429})


def post(
    target: Target, id: UUID, payload: Mapping[str, Any], settings: Settings, *, is_own: bool
) -> None:
    """Send the payload; a 2xx answer means delivered, and the answer's body is never read.

    `is_own`: an admin named the target, in the settings; a small app's hooks go where it may.
    Raises Undelivered: permanent for any 4xx but 408 and 429, for private addresses and for a
    reference to something other than a URL. Redirects are not followed. Takes no longer than
    SCHED_HOOK_TIMEOUT_S, whatever the receiver does.
    """
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(id)}
    url, app = _url(target, settings, is_own=is_own), str(payload.get("small_app", ""))
    secrets = _secrets(settings, app)
    if secrets:
        headers[SIGNATURE] = signature(secrets, app, url, body, utc_now())
    _send(Request(url, headers, method="POST", body=body), target, settings.hook)


def ping(target: Target, settings: Settings) -> None:
    """Send a request without a body, by the method that the target's kind names; see `post`."""
    body = b"" if target.kind == "POST" else None
    url = _url(target, settings, is_own=False)
    _send(Request(url, method=target.kind, body=body), target, settings.hook)


def _send(request: Request, target: Target, settings: HookSettings) -> None:
    """Send a request once. Raises Undelivered unless its answer means that it was taken."""
    host = shown_target(target)
    # The URL of a ping is a secret by itself: anyone with it can ping.
    is_secret = is_reference(target.to) or target.kind in PINGS
    name = host if is_secret else None
    request = replace(request, name=name, allow_private=settings.allow_private, setting=PRIVATE)
    try:
        status = status_of(request, settings.timeout_s)
    except RequestFailed as error:
        raise Undelivered(f"{host}: {error}", permanent=error.permanent) from None
    check_status(status, host)


def _secrets(settings: Settings, app: str) -> list[str]:
    try:
        return secrets_of(settings.hook, app)
    except SecretMissing as error:
        # Not permanent: a later try succeeds once the worker has the secret.
        raise Undelivered(f"SCHED_HOOK_SECRET: {error}", permanent=False) from None


def _url(target: Target, settings: Settings, *, is_own: bool) -> str:
    if not is_reference(target.to):
        return target.to
    try:
        url = resolved(target.to, OF_SETTINGS if is_own else settings.secrets)
    except SecretMissing as error:
        raise Undelivered(str(error), permanent=False) from None
    try:
        check_web_url(url)
    except ValueError:
        text = f"{target.to} holds no http or https URL; store one there, such as https://…"
        raise Undelivered(text, permanent=True) from None
    return url


def check_status(status: int, host: str) -> None:
    """Raise Undelivered unless the answer's status means that it was taken."""
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        text = f"{host} answered {status}, a redirect; write the URL that it leads to"
        raise Undelivered(text, permanent=False)
    is_refused = 400 <= status < 500 and status not in TRY_AGAIN
    raise Undelivered(f"{host} answered {status}", permanent=is_refused)
