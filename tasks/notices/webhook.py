"""Send a webhook: one signed POST with a time limit, to a checked address.

If the target refers to a secret URL, no error and no log line contains a part of it.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import httpx

from models.notices import Target, shown_target
from models.references import is_reference
from runtime.clock import utc_now
from runtime.config import Settings
from runtime.references import OF_SETTINGS, SecretMissing, resolved
from runtime.sections import HookSettings
from runtime.urls import check_web_url
from tasks.notices.signing import secrets_of, signature
from tasks.notices.undelivered import Undelivered
from tasks.outgoing.addresses import NoAddress
from tasks.outgoing.deadline import Deadline
from tasks.outgoing.guard import guarded_client
from tasks.outgoing.http_errors import reason_of

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
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "minutebook",
        "Idempotency-Key": str(id),
    }
    url, app = _url(target, settings, is_own=is_own), str(payload.get("small_app", ""))
    secrets = _secrets(settings, app)
    if secrets:
        headers[SIGNATURE] = signature(secrets, app, url, body, utc_now())
    try:
        request = {"url": url, "content": body, "headers": headers}
        private = settings.hook.allow_private
        status = status_of(request, shown_target(target), settings.hook, allow_private=private)
    except Undelivered as error:
        if not is_reference(target.to):
            raise
        raise Undelivered(without(url, str(error)), permanent=error.permanent) from None
    check_status(status, shown_target(target))


def without(url: str, text: str) -> str:
    """Return the text with each part of the URL replaced by `…`."""
    parts = urlsplit(url)
    pieces = {url, parts.netloc, parts.hostname, parts.path, parts.query, parts.fragment}
    pieces |= {parts.username, parts.password, *parts.path.split("/"), *parts.query.split("&")}
    known = {piece for piece in pieces if piece and len(piece) > 1}
    for piece in sorted(known | {unquote(one) for one in known}, key=len, reverse=True):
        text = text.replace(piece, "…")
    return text


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


def status_of(
    request: Mapping[str, Any], host: str, settings: HookSettings, *, allow_private: bool
) -> int:
    """Return the status of the answer to a POST. Raises Undelivered."""
    deadline = Deadline(settings.timeout_s)
    client = guarded_client(deadline, allow_private=allow_private, setting=PRIVATE)
    try:
        with deadline, client, client.stream("POST", **request) as response:
            return response.status_code
    except NoAddress as error:
        raise Undelivered(str(error), permanent=error.permanent) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        if deadline.is_over or isinstance(error, httpx.TimeoutException):
            text = f"{host} gave no answer within {settings.timeout_s:g} s"
            raise Undelivered(text, permanent=False) from None
        is_permanent = isinstance(error, httpx.InvalidURL | ValueError)
        raise Undelivered(f"{host}: {reason_of(error)}", permanent=is_permanent) from None
