"""The text of a notice sent as a mail."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from models.notices import NoticeKind
from models.values import counted
from tasks.outgoing.mail.message import Content

_HEADINGS = {
    NoticeKind.SUCCESS: "{state}: {action}",
    NoticeKind.FAILURE: "{state}: {action}",
    NoticeKind.RESTORED: "recovered: {action}",
    NoticeKind.ALERT: "ALERT: {action}: failed or partial {troubles_in_row} times in a row",
    NoticeKind.RECOVERED: "recovered: {action}",
    NoticeKind.OVERDUE: "OVERDUE: {action}: {reason}",
    NoticeKind.SEEN: "no longer overdue: {action}",
    NoticeKind.MISSED: "MISSED: {action}: {count}",
    NoticeKind.BROKEN: "BROKEN: {reason}",
    NoticeKind.MENDED: "mended: {reason}",
}
_FIRST = {
    NoticeKind.SUCCESS: "The action succeeded.",
    NoticeKind.FAILURE: "An operation of the action did not succeed.",
    NoticeKind.RESTORED: "The action succeeds again.",
    NoticeKind.ALERT: "The action failed or was partial several times in a row.",
    NoticeKind.RECOVERED: "The action succeeds again.",
    NoticeKind.OVERDUE: "An occurrence of the action is due, and nothing has started it.",
    NoticeKind.SEEN: "The action, which was overdue, has run.",
    NoticeKind.MISSED: "Occurrences were missed: they were due, and did not run.",
    NoticeKind.BROKEN: "Minutebook does not work as it should.",
    NoticeKind.MENDED: "What was broken works again.",
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
    ("missed", "missed occurrences"),
    ("actions", "of so many actions"),
    ("first_at", "first"),
    ("last_at", "last"),
    ("ran_instead_at", "runs instead"),
    ("first_started_at", "started"),
    ("finished_at", "finished"),
    ("attempt", "attempt"),
    ("run_number", "run number"),
    ("failures_in_row", "failures in a row"),
    ("troubles_in_row", "failed or partial in a row"),
    ("operation_id", "operation"),
    ("url", "link"),
)


def content_of(kind: NoticeKind, payload: Mapping[str, Any]) -> Content:
    """Return subject and text of the mail that reports `payload`."""
    values = {"state": "", "reason": "", "troubles_in_row": 0, **payload}
    values["count"] = counted(payload.get("missed") or 0, "occurrence")
    values["action"] = payload.get("action") or counted(payload.get("actions") or 0, "action")
    subject = _HEADINGS[kind].format_map(values | {"state": str(values["state"]).upper()})
    return Content(f"[minutebook] {subject}", "\n".join(_lines(kind, payload)) + "\n")


def _lines(kind: NoticeKind, payload: Mapping[str, Any]) -> Iterator[str]:
    yield _FIRST[kind]
    yield ""
    for key, label in _SHOWN:
        if payload.get(key):
            yield f"{label:<27} {payload[key]}"
    for key, (title, line) in _LISTS.items():
        if payload.get(key):
            yield ""
            yield title
            yield from (line(one) for one in payload[key])
    for title, commands in _commands(payload):
        yield ""
        yield title
        yield from (f"  minutebook {one}" for one in commands)


def _step_line(step: Mapping[str, Any]) -> str:
    text = step.get("error") or step.get("message") or ""
    return f"  {step['name']:<16} {step['state']:<9} {text}".rstrip()


def _finding_line(one: Mapping[str, Any]) -> str:
    return f"  {one['text']}, since {one['since']}\n    {one['remedy']}"


_LISTS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "findings": ("What it is:", _finding_line),
    "steps": ("Steps:", _step_line),
    "log": ("Last log lines:", lambda line: f"  {line}"),
    "most_missed": ("Most missed:", lambda one: f"  {one['missed']:>7,}  {one['name']}"),
}


def _commands(payload: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield what to run, by what it is for."""
    if "action" not in payload:
        missed = ["operation list --all-apps --state missed"] if payload.get("missed") else []
        yield "To see more:", ["status", *missed]
        return
    app, action = (shlex.quote(payload[key]) for key in ("small_app", "action"))
    if payload.get("missed") and not payload.get("event"):
        span = f"--from {payload['first_at']} --to {payload['last_at']}"
        yield "To run what was missed:", [f"--app {app} backfill {action} {span}"]
    elif payload.get("missed"):
        listing = f"--app {app} operation list --action {action} --state missed"
        yield "To run what was missed:", [listing, f"--app {app} operation retry ID..."]
    shown = [f"--app {app} action show {action}"]
    if payload.get("operation_id"):
        shown.insert(0, f"--app {app} operation show {payload['operation_id']}")
    yield "To see more:", shown
