"""Failures of a small app, on both stores."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from data.store.failures import ActionFailures, failures_since
from models.sql import database_now
from models.tables import actions, missed_spans, operations
from tests.ticks import HOUR
from tests.transactions import act, clock_of, execute


class Shop:
    """Actions and operations of the small app `default`, made by hand."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.now = clock_of(engine)

    def action(self, name: str) -> UUID:
        uid = uuid4()
        values: dict[str, Any] = {
            "uid": uid, "small_app_id": 1, "name": name, "active": True, "document": "{}",
            "document_hash": "", "plan": "{}", "revision": 1, "created_at": database_now(),
            "updated_at": database_now(),
        }  # fmt: skip
        execute(self.engine, sa.insert(actions).values(values))
        return uid

    def operation(self, action: UUID, state: str, ago: timedelta, **more: Any) -> None:
        """Record an operation that ended, or was missed, this long ago."""
        at = self.now - ago
        values: dict[str, Any] = {
            "id": uuid4(), "small_app_id": 1, "action_uid": action, "revision": 1, "state": state,
            "occurrence_at": at, "triggerer": "test", "queue": "quick", "task": "t",
            "recorded_at": at, "not_before": at, "finished_at": None if state == "missed" else at,
        }  # fmt: skip
        execute(self.engine, sa.insert(operations).values(values | more))

    def span(self, action: UUID, count: int, ago: timedelta) -> None:
        at = self.now - ago
        values = {
            "action_uid": action, "revision": 1, "first_at": at, "last_at": at, "count": count,
            "reason": "too late", "recorded_at": at,
        }  # fmt: skip
        execute(self.engine, sa.insert(missed_spans).values(values))

    def failures(self) -> list[ActionFailures]:
        return list(act(self.engine, failures_since, 1, self.now - 10 * HOUR, uuid4()))


@pytest.fixture
def shop(engine: sa.Engine) -> Shop:
    return Shop(engine)


def test_failures_are_counted_by_action_the_latest_first(shop: Shop) -> None:
    nightly, weekly = shop.action("nightly"), shop.action("weekly")
    shop.operation(nightly, "failed", 5 * HOUR, error="first")
    shop.operation(nightly, "failed", 3 * HOUR, error="second")
    shop.operation(nightly, "missed", 4 * HOUR)
    shop.span(nightly, 40, 6 * HOUR)
    shop.operation(weekly, "partial", 2 * HOUR)

    assert shop.failures() == [
        ActionFailures("weekly", 0, 1, 0, shop.now - 2 * HOUR, None),
        ActionFailures("nightly", 2, 0, 41, shop.now - 3 * HOUR, "second"),
    ]


def test_a_partial_operation_names_the_failed_domains(shop: Shop) -> None:
    refresh = {
        "name": "refresh", "state": "partial", "message": "rewrote a (2 rows); b failed: gone",
        "details": {"failed": {"b": "gone"}},
    }  # fmt: skip
    mail = {"name": "send_email", "state": "partial", "message": "sent 1 message; 2 refused"}
    nightly, weekly = shop.action("nightly"), shop.action("weekly")
    shop.operation(nightly, "partial", 2 * HOUR, steps=[refresh])
    shop.operation(weekly, "partial", 3 * HOUR, steps=[{**refresh, "state": "success"}, mail])

    assert [one.error for one in shop.failures()] == ["b: gone", "sent 1 message; 2 refused"]


def test_older_and_successful_operations_do_not_count(shop: Shop) -> None:
    uid = shop.action("nightly")
    for state in ("failed", "partial", "missed"):
        shop.operation(uid, state, 10 * HOUR)
    for state in ("success", "skipped", "cancelled", "dropped", "handed_over"):
        shop.operation(uid, state, HOUR)
    shop.span(uid, 3, 10 * HOUR)

    assert shop.failures() == []
