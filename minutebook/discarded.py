"""End the operations whose messages Celery discards: revoked, unknown or rejected tasks.

Such a task never runs, so nothing else would end its operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from celery import Celery, signals

from minutebook.followed import HEADER
from minutebook.reporter import Reporter

# How long to repeat it, while its message is just being sent or the server is away.
NOTE_S = 60.0

ReporterOf = Callable[[Celery], Optional[Reporter]]


def note_discarded(app: Celery, reporter_of: ReporterOf) -> None:
    """Let each worker of `app` end the operations of messages that Celery discards."""

    def revoked(sender: Any, request: Any, expired: bool = False, **_: object) -> None:
        if sender.app is app:
            told = ("expired", "expired before it started") if expired else _REVOKED
            _note(reporter_of(app), sender, ours(headers_of(request), request.id), *told)

    def unknown(sender: Any, message: Any, name: str, id: str, **_: object) -> None:
        if sender.app is app:
            reason = f"worker {sender.hostname} does not know the task {name}"
            _note(reporter_of(app), sender, ours(message.headers, id), "unknown", reason)

    def rejected(sender: Any, message: Any, exc: Any = None, **_: object) -> None:
        if sender.app is app:
            its = ours(message.headers, str((message.headers or {}).get("id")))
            reason = f"worker {sender.hostname} rejected its message: {_why(message, exc)}"
            _note(reporter_of(app), sender, its, "rejected", reason)

    key = f"minutebook {id(app)}"
    signals.task_revoked.connect(revoked, weak=False, dispatch_uid=f"{key} revoked")
    signals.task_unknown.connect(unknown, weak=False, dispatch_uid=f"{key} unknown")
    signals.task_rejected.connect(rejected, weak=False, dispatch_uid=f"{key} rejected")


def _note(
    reporter: Reporter | None, sender: Any, message: dict[str, Any] | None, what: str, reason: str
) -> None:
    # In a pool's child nothing is to be noted: the operation has ended already.
    if reporter is None or message is None or reporter.is_child:
        return
    its = {"attempt": message["attempt"], "worker": str(getattr(sender, "hostname", ""))}
    said = {**its, "what": what, "reason": reason}
    reporter.report((f"/api/operations/{message['id']}:discard", said), within_s=NOTE_S)


_REVOKED = ("revoked", "revoked in Celery")


def _why(message: Any, error: Any) -> str:
    return f"content type {message.content_type!r}" if error is None else repr(error)


def headers_of(request: Any) -> dict[str, Any]:
    """Return the headers of a task's request, ours included."""
    headers = dict(request.headers or {})
    # Before Celery 5.3 a custom header is only an attribute of the request.
    its_own = getattr(request, HEADER, None)
    return headers if its_own is None or HEADER in headers else {**headers, HEADER: its_own}


def ours(headers: Any, id: str) -> dict[str, Any] | None:
    """Return our header of a message; None if Minutebook did not send the message."""
    header = (headers or {}).get(HEADER)
    if not isinstance(header, dict) or not isinstance(header.get("attempt"), int):
        return None
    # A task may pass its headers on to another task, which is then not ours.
    return header if header.get("id") == id else None
