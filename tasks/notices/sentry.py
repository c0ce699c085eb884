"""Check in with Sentry Crons: one envelope that says how an operation stands.

Source of the form: https://develop.sentry.dev/sdk/telemetry/check-ins/
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from models.action.monitors import slug_of
from models.notices import NoticeKind, is_failure
from models.operation import OperationState
from models.store.notices import Notice
from runtime.config import Settings
from tasks.notices.undelivered import Undelivered
from tasks.notices.webhook import check_status, status_of

TYPE = "application/x-sentry-envelope"
UNSET = "SCHED_ALERT_SENTRY_DSN is not set for the workers"


def check_in(notice: Notice, settings: Settings) -> None:
    """Send the check-in of a notice; raises Undelivered."""
    dsn = settings.alert.sentry_dsn.get_secret_value()
    if not dsn:
        raise Undelivered(UNSET, permanent=False)
    url, key = endpoint_of(dsn)
    said = said_of(notice, settings.alert.sentry_environment)
    request = {
        "url": url,
        "content": envelope_of(said, notice.created_at),
        "headers": {
            "Content-Type": TYPE,
            "User-Agent": "minutebook",
            "X-Sentry-Auth": f"Sentry sentry_version=7, sentry_client=minutebook, sentry_key={key}",
        },
    }
    host = urlsplit(url).hostname or "Sentry"
    # An admin named it: a Sentry of one's own often has a private address.
    check_status(status_of(request, host, settings.hook, allow_private=True), host)


def endpoint_of(dsn: str) -> tuple[str, str]:
    """Return the URL to which envelopes are sent, and the public key, of a DSN."""
    parts = urlsplit(dsn)
    prefix, _, project = parts.path.rpartition("/")
    netloc = parts.netloc.rpartition("@")[2]
    path = f"{prefix}/api/{project}/envelope/"
    return urlunsplit((parts.scheme, netloc, path, "", "")), parts.username or ""


def said_of(notice: Notice, environment: str) -> dict[str, Any]:
    """Return the check-in that a notice stands for."""
    told = notice.payload
    said: dict[str, Any] = {
        # What was missed has no operation.
        "check_in_id": told.get("check_in_id") or notice.id.hex,
        "monitor_slug": notice.target.to or slug_of(told["small_app"], told["action"]),
        "status": _status(notice.kind, told),
        "environment": environment,
    }
    if (duration_s := _duration_s(told)) is not None:
        said["duration"] = duration_s
    if told.get("monitor"):
        said["monitor_config"] = told["monitor"]
    return said


def _status(kind: NoticeKind, told: Mapping[str, Any]) -> str:
    if kind is NoticeKind.STARTED:
        return "in_progress"
    if kind is NoticeKind.MISSED:
        # Sentry refuses "missed" from others: only it may say so.
        return "error"
    has_failed = is_failure(OperationState(told["state"]), told.get("reason"))
    return "error" if has_failed else "ok"


def _duration_s(told: Mapping[str, Any]) -> float | None:
    began, ended = told.get("first_started_at"), told.get("finished_at")
    if not began or not ended:
        return None
    span = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    return max(0.0, span.total_seconds())


def envelope_of(said: Mapping[str, Any], at: datetime) -> bytes:
    """Return an envelope with one check-in."""
    body = json.dumps(said, ensure_ascii=False)
    head = {"sent_at": at.isoformat()}
    item = {"type": "check_in", "length": len(body.encode())}
    return f"{json.dumps(head)}\n{json.dumps(item)}\n{body}\n".encode()
