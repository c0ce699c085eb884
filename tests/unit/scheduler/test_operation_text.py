"""What is said of an operation, by its row."""

from datetime import UTC, datetime
from typing import Any

import pytest

from models.operation import OperationState
from models.store.actions.explain_facts import Status
from models.worker_kinds import EXECUTE_QUICK
from scheduler.explain.operation_text import ended, runs, waits
from tests.ticks import MINUTE

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
ROW: dict[str, Any] = {
    "state": OperationState.QUEUED, "attempt": 1, "queue": "quick", "task": EXECUTE_QUICK,
    "recorded_at": NOON, "sent_at": NOON, "not_before": NOON, "started_at": NOON,
    "finished_at": NOON + MINUTE, "heartbeat_at": NOON, "worker": "worker-7", "error": None,
    "reason": None, "waiting_for": None, "cancel_requested_at": None,
}  # fmt: skip
UNSENT = {"state": OperationState.PENDING}
AT = "2027-01-04T12:00:00Z"
UNKNOWN = Status(None, frozenset())
TICKED = Status({"now": NOON, "report": {}}, frozenset())
ERROR = {"broker_error": "Redis at a:1 refuses connections"}
REFUSED = Status({"now": NOON, "report": ERROR}, frozenset())
UNREAD, WORKER = f"has waited in queue quick since {AT}", "`minutebook worker --queues quick`"
KEPT = f"was recorded at {AT} and is not sent yet"


@pytest.mark.parametrize(
    ("changes", "status", "told"),
    [
        ({}, Status(None, frozenset({"minutebook.quick"})), f"{UNREAD} for a free worker"),
        ({}, UNKNOWN, f"{UNREAD}, but no worker listens to queue quick; {WORKER} starts one"),
        ({"waiting_for": 7}, UNKNOWN, "waits for run 7 of the same action to end"),
        (UNSENT, UNKNOWN, f"{KEPT}: no daemon has ever ticked; start one with `minutebook up`"),
        (UNSENT, REFUSED, f"{KEPT}: at the last tick, Redis at a:1 refuses connections"),
        (UNSENT, TICKED, f"{KEPT}: the next tick does it; the last one was at {AT}"),
    ],
    ids=["free worker", "no worker", "another run", "no daemon", "broker", "next tick"],
)
def test_what_one_not_started_waits_for(changes: dict[str, Any], status: Status, told: str) -> None:
    assert waits(ROW | changes, status, NOON, None) == told


def test_a_running_one_has_its_worker_its_attempt_and_its_silence() -> None:
    since = "has been running since 2027-01-04T12:00:00Z on worker-7"
    silent = "its worker has been silent since 2027-01-04T12:00:00Z: a tick takes it back"
    asked = ROW | {"cancel_requested_at": NOON, "attempt": 2}

    assert runs(ROW, NOON, MINUTE) == since
    assert runs(ROW, NOON + 2 * MINUTE, MINUTE) == f"{since}; {silent}"
    assert runs(asked, NOON, MINUTE) == (
        f"{since}; it was asked to end at 2027-01-04T12:00:00Z, in attempt 2"
    )


@pytest.mark.parametrize(
    ("state", "why", "told"),
    [
        ("success", {}, "ran, ended"),
        ("partial", {"reason": "time box"}, "ran in part, ended"),
        ("failed", {"error": "boom"}, "failed, ended"),
        ("cancelled", {"reason": "by ann"}, "was cancelled at"),
    ],
)
def test_an_ended_one_has_end_and_reason(state: str, why: dict[str, str], told: str) -> None:
    found = ended(ROW | why | {"state": state})

    because = "".join(f": {one}" for one in why.values())
    started = " (started 2027-01-04T12:00:00Z)"
    assert found == f"{told} 2027-01-04T12:01:00Z{started}{because}"
