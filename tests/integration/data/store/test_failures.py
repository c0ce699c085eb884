"""Failures of a small app, on both stores."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa

from data.store.failures import ActionFailures, failures_since
from models.tables import missed_spans
from tests.integration.data.steps.conftest import Work
from tests.ticks import HOUR
from tests.transactions import act, execute

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def add(work: Work, action: UUID, state: str, hours: int, **more: Any) -> None:
    """Record an operation that ended, or was missed, so many hours before noon."""
    at = NOON - hours * HOUR
    instants = dict.fromkeys(("occurrence_at", "recorded_at"), at)
    finished_at = None if state == "missed" else at
    work.operation(action_uid=action, state=state, finished_at=finished_at, **instants, **more)


def add_span(work: Work, action: UUID, count: int, hours: int) -> None:
    at = dict.fromkeys(("first_at", "last_at", "recorded_at"), NOON - hours * HOUR)
    span = {"action_uid": action, "revision": 1, "count": count, "reason": "too late", **at}
    execute(work.engine, sa.insert(missed_spans).values(span))


def failures(work: Work) -> list[ActionFailures]:
    return act(work.engine, failures_since, work.app.id, NOON - 10 * HOUR, uuid4())


def test_failures_are_counted_by_action_the_latest_first(work: Work) -> None:
    nightly, weekly = (work.action_of(work.operation()) for _ in range(2))
    add(work, nightly, "failed", 5, error="first")
    add(work, nightly, "failed", 3, error="second")
    add(work, nightly, "missed", 4)
    add_span(work, nightly, 40, 6)
    add(work, weekly, "partial", 2)

    assert failures(work) == [
        ActionFailures(str(weekly), 0, 1, 0, NOON - 2 * HOUR, None),
        ActionFailures(str(nightly), 2, 0, 41, NOON - 3 * HOUR, "second"),
    ]


def test_a_partial_operation_names_the_failed_domains(work: Work) -> None:
    refresh = {
        "name": "refresh", "state": "partial", "message": "rewrote a (2 rows); b failed: gone",
        "details": {"failed": {"b": "gone"}},
    }  # fmt: skip
    mail = {"name": "send_email", "state": "partial", "message": "sent 1 message; 2 refused"}
    nightly, weekly = (work.action_of(work.operation()) for _ in range(2))
    add(work, nightly, "partial", 2, steps=[refresh])
    add(work, weekly, "partial", 3, steps=[{**refresh, "state": "success"}, mail])

    assert [one.error for one in failures(work)] == ["b: gone", "sent 1 message; 2 refused"]


def test_older_and_successful_operations_do_not_count(work: Work) -> None:
    uid = work.action_of(work.operation())
    for state in ("failed", "partial", "missed"):
        add(work, uid, state, 10)
    for state in ("success", "skipped", "cancelled", "dropped", "handed_over"):
        add(work, uid, state, 1)
    add_span(work, uid, 3, 10)

    assert failures(work) == []
