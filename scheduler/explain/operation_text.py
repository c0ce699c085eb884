"""Describe an operation's row in one sentence: pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from models.operation import OperationState
from models.store.actions.explain_facts import Status
from models.store.operations import NO_OTHER_ATTEMPT
from models.store.pauses import Pause
from models.values import format_instant
from models.values import instant_or_dash as _at
from models.worker_kinds import HTTP, worker_kind_of

Row = Mapping[Any, Any]


def ended(row: Row) -> str:
    """Return how an operation ended, and why."""
    text = _ran(row) if row["state"] in _RAN else _not_run(row)
    return text + _attempts(row)


def made_due(row: Row, watched: str | None) -> str:
    """Return which end made an operation due; `watched` is the name of the action that ended."""
    if watched is None or row["event_at"] is None:
        return ""
    id, _, state = (row["event_id"] or "").partition(" ")
    return f'; due after "{watched}" {_ENDED.get(state, state)} at {_at(row["event_at"])} ({id})'


def runs(row: Row, now: datetime, lease: timedelta) -> str:
    """Return the progress of a running operation, and whether its worker is silent for `lease`."""
    text = f"has been running since {_at(row['started_at'])} on {row['worker']}"
    step = next((one["name"] for one in row["steps"] or [] if one["state"] == "running"), None)
    text += f", step {step}" if step else ""
    if row["cancel_requested_at"] is not None:
        text += f"; it was asked to end at {_at(row['cancel_requested_at'])}"
    if now - row["heartbeat_at"] > lease:
        silent = _at(row["heartbeat_at"])
        text += f"; its worker has been silent since {silent}: a tick takes it back"
    return text + _attempts(row)


def waits(row: Row, status: Status, now: datetime, error: str | None) -> str:
    """Return what an unstarted operation waits for; `error` is its last attempt's."""
    if row["waiting_for"] is not None:
        return f"waits for operation {row['waiting_for']} of the same action to end"
    if error is not None:
        return f"attempt {row['attempt'] - 1} did not succeed ({error}){_again(row, now)}"
    if worker_kind_of(row["task"]) is HTTP:
        return _offered(row, status)
    if row["state"] == OperationState.QUEUED:
        return _queued(row, status)
    return f"was recorded at {_at(row['recorded_at'])} and is not sent yet: {sends_again(status)}"


def held(pause: Pause) -> str:
    """Return that a pause holds an unstarted operation."""
    end = "" if pause.until is None else f" until {_at(pause.until)}"
    why = f" ({pause.reason})" if pause.reason else ""
    return f"is not sent: {pause.target.words} was paused by {pause.by}{end}{why}"


def sends_again(status: Status) -> str:
    """Return what keeps the daemon from sending, or when it last ticked."""
    if status.tick is None:
        return "no daemon has ever ticked; start one with `minutebook up`"
    broker = status.tick["report"].get("broker_error")
    if broker:
        return f"the broker was unavailable at the last tick ({broker})"
    return f"the next tick does it; the last one was at {format_instant(status.tick['now'])}"


def _attempts(row: Row) -> str:
    return f", in attempt {row['attempt']}" if row["attempt"] > 1 else ""


def _because(row: Row) -> str:
    error, reason = row["error"], row["reason"] or ""
    has_both = error and reason.startswith(NO_OTHER_ATTEMPT)
    why = f"{error}; {reason}" if has_both else error or reason
    return f": {why}" if why else ""


def _again(row: Row, now: datetime) -> str:
    from_at = row["not_before"]
    if from_at is not None and from_at > now and row["state"] == OperationState.PENDING:
        return f"; it is tried again from {_at(from_at)} on"
    return "; it is tried again"


def _queued(row: Row, status: Status) -> str:
    queue = row["queue"]
    sent = f"was sent to queue {queue} at {_at(row['sent_at'])}"
    return sent + (_unheard(row, status) or " and waits for a free worker")


def _unheard(row: Row, status: Status) -> str:
    """Return that no worker listens to the operation's queue, or nothing."""
    queue, worker_kind = row["queue"], worker_kind_of(row["task"])
    is_known = worker_kind.knows_readers(queue, is_sent=True)
    if not is_known or worker_kind.listed(queue) in status.queues:
        return ""
    command = f"`minutebook worker --queues {queue}` starts one"
    remedy = command if worker_kind.is_ours else "start a worker of your application"
    return f", but no worker listens to queue {queue}; {remedy}"


def _offered(row: Row, status: Status) -> str:
    queue = row["queue"]
    waits = f"has waited in queue {queue} since {_at(row['recorded_at'])} for a worker over HTTP"
    if HTTP.listed(queue) not in status.queues:
        return f"{waits}, but no worker asks for the jobs of queue {queue}; start one"
    return waits


def _ran(row: Row) -> str:
    words = {
        OperationState.SUCCESS: "ran",
        OperationState.PARTIAL: "ran in part",
        OperationState.FAILED: "failed",
        OperationState.CANCELLED: "was cancelled",
    }
    since = f" (started {_at(row['started_at'])})" if row["started_at"] else ""
    return f"{words[row['state']]}, ended {_at(row['finished_at'])}{since}{_because(row)}"


def _not_run(row: Row) -> str:
    word = {
        OperationState.SKIPPED: "was skipped",
        OperationState.DROPPED: "was dropped: it came too soon after the last start",
        OperationState.MISSED: "was missed",
        OperationState.HANDED_OVER: "was handed over",
    }[row["state"]]
    return f"{word} at {_at(row['finished_at'])}{_because(row)}"


_ENDED = {
    "success": "succeeded",
    "partial": "succeeded in part",
    "failed": "failed",
    "handed_over": "was handed over",
}
_RAN = frozenset({"success", "partial", "failed", "cancelled"})
