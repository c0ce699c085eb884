"""The text of a notice sent as a mail."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from models.notices import NoticeKind
from small_apps.mail.message import Content

_HEADINGS = {
    NoticeKind.SUCCESS: "{state}: {action}",
    NoticeKind.FAILURE: "{state}: {action}",
    NoticeKind.ALERT: "ALERT: {action}: failed or partial {troubles_in_row} times in a row",
    NoticeKind.RECOVERED: "recovered: {action}",
    NoticeKind.OVERDUE: "OVERDUE: {action}: {reason}",
    NoticeKind.SEEN: "no longer overdue: {action}",
}
_FIRST = {
    NoticeKind.SUCCESS: "The action succeeded.",
    NoticeKind.FAILURE: "An operation of the action did not succeed.",
    NoticeKind.ALERT: "The action failed or was partial several times in a row.",
    NoticeKind.RECOVERED: "The action succeeds again.",
    NoticeKind.OVERDUE: "An occurrence of the action is due, and nothing has started it.",
    NoticeKind.SEEN: "The action, which was overdue, has run.",
}
_SHOWN = (
    ("action", "action"),
    ("small_app", "small app"),
    ("state", "state"),
    ("reason", "reason"),
    ("error", "error"),
    ("subject", "subject"),
    ("triggerer", "triggered by"),
    ("occurrence_at", "occurrence"),
    ("first_started_at", "started"),
    ("finished_at", "finished"),
    ("attempt", "attempt"),
    ("run_number", "run number"),
    ("failures_in_row", "failures in a row"),
    ("troubles_in_row", "failed or partial in a row"),
    ("operation_id", "operation"),
)


def content_of(kind: NoticeKind, payload: Mapping[str, Any]) -> Content:
    """Return subject and text of the mail that reports `payload`."""
    values = {"state": "", "reason": "", "troubles_in_row": 0, **payload}
    subject = _HEADINGS[kind].format_map(values | {"state": str(values["state"]).upper()})
    return Content(f"[minutebook] {subject}", "\n".join(_lines(kind, payload)) + "\n")


def _lines(kind: NoticeKind, payload: Mapping[str, Any]) -> Iterator[str]:
    yield _FIRST[kind]
    yield ""
    for key, label in _SHOWN:
        if payload.get(key):
            yield f"{label:<27} {payload[key]}"
    if payload.get("steps"):
        yield ""
        yield "Steps:"
        for step in payload["steps"]:
            text = step.get("error") or step.get("message") or ""
            yield f"  {step['name']:<16} {step['state']:<9} {text}".rstrip()
    if payload.get("log"):
        yield ""
        yield "Last log lines:"
        yield from (f"  {line}" for line in payload["log"])
    yield ""
    yield "To see more:"
    app = shlex.quote(payload["small_app"])
    yield f"  minutebook --app {app} operation show {payload['operation_id']}"
    yield f"  minutebook --app {app} action show {shlex.quote(payload['action'])}"
