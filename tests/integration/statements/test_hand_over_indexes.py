"""What a tick and a claim execute for tasks of the user's own finds its rows by an index."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from broker.app import configure
from broker.in_use import settings_in_use
from models.celery_task import CeleryRules
from models.sql import database_now
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import external_send, external_worker, reserve
from models.store.operations.start_checks import TAKEN, NotStarted
from scheduler.changes.change import create_all
from scheduler.sweep import dispatch_ready
from tests import followed_tasks as followed
from tests.celery_messages import TASK, allowing, follow_by_name
from tests.factories import author, make_document, make_operation, update_operation
from tests.integration.statements.acts import assert_indexed
from tests.integration.statements.conftest import MINUTE, Filled
from tests.integration.statements.plans import Statements

RULES = CeleryRules(("shop.*",))


@pytest.fixture(autouse=True)
def _allowed(filled: Filled) -> Iterator[None]:
    before = settings_in_use()
    configure(allowing(before, "shop.*"))
    yield
    configure(before)


def due(filled: Filled, name: str, **step: Any) -> UUID:
    """Record an operation that may be sent now."""
    document = make_document(name=name, operations={"celery_task": {"task": TASK, **step}})
    action = create_all(filled.engine, [document], replace(author(), celery=RULES))[0]
    id = make_operation(filled.engine, action, filled.now - MINUTE, "Scheduled action")
    update_operation(filled.engine, id, not_before=database_now(-1.0))
    return id


def begun(filled: Filled, id: UUID) -> None:
    with filled.engine.begin() as connection:
        external_send.begin(
            connection, reserve.reserve_sendable(connection, 1, only=[id]), RULES, NO_ALERTS
        )
    update_operation(filled.engine, id, not_before=database_now(-1.0))


def test_sending_tasks_of_the_user_s_own(filled: Filled, statements: Statements) -> None:
    for number in range(3):
        due(filled, f"sent {number}")

    with statements.captured():
        dispatch_ready(filled.engine)

    assert_indexed(statements, "operations_to_send")


def test_deciding_what_is_in_doubt(filled: Filled, statements: Statements) -> None:
    begun(filled, due(filled, "left"))

    with statements.captured(), filled.engine.begin() as connection:
        decided = external_send.decide_doubtful(connection, 10, NO_ALERTS)

    assert [state for _, state in decided] == ["failed"]
    assert_indexed(statements, "operations_to_send")


def test_claiming_ending_and_waiting_for_celery_s_retry(
    filled: Filled, statements: Statements
) -> None:
    follow_by_name(filled.engine, TASK)
    id = due(filled, "followed")
    dispatch_ready(filled.engine)

    with statements.captured(), filled.engine.begin() as connection:
        early = followed.take(connection, id, 2)
        found = followed.take(connection, id)
        assert not isinstance(found, NotStarted)
        external_worker.beat(connection, found.key, {"done": 1, "total": 2})
        followed.finish(connection, found.key, {"outcome": "retry"})
        external_worker.has_ended(connection, found.key)

    assert early is TAKEN
    assert_indexed(statements)
