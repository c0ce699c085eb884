"""Describe an operation's row in one sentence: pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from models.operation import OperationState
from models.store.actions.explain_facts import Status
from models.store.pauses import Pause
from models.values import format_instant
from models.values import instant_or_dash as _at
from models.worker_kinds import HTTP, OURS, worker_kind_of

Row = Mapping[Any, Any]

_ENDED = {
    OperationState.SUCCESS: "ran, ended",
    OperationState.PARTIAL: "ran in part, ended",
    OperationState.FAILED: "failed, ended",
    OperationState.CANCELLED: "was cancelled at",
    OperationState.SKIPPED: "was skipped at",
    OperationState.DROPPED: "was dropped at",
    OperationState.MISSED: "was missed at",
    OperationState.HANDED_OVER: "was handed over at",
}


def ended(row: Row) -> str:
    """Return how an operation ended, and why."""
    since = f" (started {_at(row['started_at'])})" if row["started_at"] else ""
    why = "; ".join(one for one in (row["error"], row["reason"]) if one)
    because = f": {why}" if why else ""
    return f"{_ENDED[row['state']]} {_at(row['finished_at'])}{since}{because}{_attempts(row)}"


def made_due(row: Row, watched: str | None) -> str:
    """Return which end made an operation due; `watched` is the name of the action that ended."""
    if watched is None or row["event_at"] is None:
        return ""
    id, _, state = (row["event_id"] or "").partition(" ")
    return f'; due after "{watched}" ended as {state} at {_at(row["event_at"])} ({id})'


def runs(row: Row, now: datetime, lease: timedelta) -> str:
    """Return since when an operation runs, and whether its worker is silent for `lease`."""
    text = f"has been running since {_at(row['started_at'])} on {row['worker']}"
    if row["cancel_requested_at"] is not None:
        text += f"; it was asked to end at {_at(row['cancel_requested_at'])}"
    if now - row["heartbeat_at"] > lease:
        silent = _at(row["heartbeat_at"])
        text += f"; its worker has been silent since {silent}: a tick takes it back"
    return text + _attempts(row)


def waits(row: Row, status: Status, now: datetime, error: str | None) -> str:
    """Return what an unstarted operation waits for; `error` is its last attempt's."""
    if row["waiting_for"] is not None:
        return f"waits for run {row['waiting_for']} of the same action to end"
    if error is not None:
        is_later = row["state"] == OperationState.PENDING and (row["not_before"] or now) > now
        from_at = f" from {_at(row['not_before'])} on" if is_later else ""
        return f"attempt {row['attempt'] - 1} did not succeed ({error}); it is tried again{from_at}"
    queue, kind = row["queue"], worker_kind_of(row["task"])
    if row["state"] != OperationState.QUEUED and kind is not HTTP:
        recorded = _at(row["recorded_at"])
        return f"was recorded at {recorded} and is not sent yet: {sends_again(status)}"
    text = f"has waited in queue {queue} since {_at(row['sent_at'] or row['recorded_at'])}"
    if not kind.knows_readers(queue, is_sent=True) or kind.listed(queue) in status.queues:
        return f"{text} for a free worker"
    remedy = f"`minutebook worker --queues {queue}` starts one" if kind is OURS else "start one"
    return f"{text}, but no worker listens to queue {queue}; {remedy}"


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
        return f"at the last tick, {broker}"
    return f"the next tick does it; the last one was at {format_instant(status.tick['now'])}"


def _attempts(row: Row) -> str:
    return f", in attempt {row['attempt']}" if row["attempt"] > 1 else ""
