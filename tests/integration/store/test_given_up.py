"""An operation with a failed attempt that may not go on has failed: it counts, and notifies."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from models.operation import OperationState
from models.sql import database_now
from models.store import workers
from models.store.notices import findings
from models.store.notices.alerting import NO_ALERTS
from models.store.notices.findings import Found
from models.store.operations import external_send, put_back, refusals
from models.store.operations.end import Outcome
from models.store.operations.reserve import Message
from models.store.operations.start_checks import NotStarted
from models.store.operations.take import Claim, recorded_of
from models.tables import action_state, notices
from scheduler.changes import Change
from scheduler.changes.deletion import delete
from scheduler.changes.editing import set_active
from tests.celery_messages import RULES, celery_action
from tests.factories import (
    author,
    make_action,
    make_operation,
    row_of,
    update_operation,
)
from tests.ticks import MINUTE
from tests.transactions import act, claim_as, fetched, finish

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
HOOKS = {"on_failure": [{"webhook": "https://example.com/"}]}
SUCCESS = Outcome(OperationState.SUCCESS)
RETRIED = Outcome(OperationState.PENDING, "no ink", "retry", is_failure=True)


def made(engine: sa.Engine, **policy: Any) -> Change:
    return make_action(engine, policy=policy, hooks=HOOKS)


def started(engine: sa.Engine, action: Change, minute: int) -> UUID:
    id = make_operation(engine, action, NOON + minute * MINUTE, "Scheduled action")
    assert isinstance(asked(engine, id), Claim)
    return id


def asked(engine: sa.Engine, id: UUID) -> Claim | NotStarted:
    return claim_as(engine, id, row_of(engine, id)["attempt"], "tests")


def failed_once(engine: sa.Engine, action: Change, minute: int = 0) -> UUID:
    """Return an operation whose first attempt failed, and whose second one waits."""
    id = started(engine, action, minute)
    finish(engine, id, RETRIED)
    return id


def end_of(engine: sa.Engine, id: UUID) -> tuple[Any, ...]:
    row = row_of(engine, id)
    return row["state"], row["reason"], row["error"]


def failures_in_row(engine: sa.Engine, action: Change) -> int:
    its = (action_state.c.action_uid == action.uid, action_state.c.subject == "")
    query = sa.select(action_state.c.failures_in_row).where(*its)
    return int(fetched(engine, query).scalar_one())


def owed(engine: sa.Engine) -> int:
    return int(fetched(engine, sa.select(sa.func.count(notices.c.id))).scalar_one())


@pytest.mark.parametrize("is_outage", [False, True], ids=["alone", "names_an_outage"])
def test_a_retry_that_meets_a_newer_one_has_failed(engine: sa.Engine, is_outage: bool) -> None:
    act(engine, workers.beat, workers.Heartbeat("quick@tests", "quick", 1))
    action = made(engine)
    id = failed_once(engine, action)
    started(engine, action, 1)
    if is_outage:
        act(engine, findings.begin, Found("broker_down", "", "away", ""))

    asked(engine, id)

    state, reason, error = end_of(engine, id)
    assert (state, error) == ("failed", "no ink")
    told, _, outage = reason.partition(": the broker did not answer from ")
    assert told == "no other attempt: a newer occurrence has started"
    assert bool(outage) is is_outage
    assert (failures_in_row(engine, action), owed(engine)) == (1, 1)


def test_such_a_retry_takes_no_short_way(engine: sa.Engine) -> None:
    """Jobs and tasks of the application start what nothing keeps back by one statement."""
    action = made(engine)
    first = make_operation(engine, action, NOON, "Scheduled action")
    id = failed_once(engine, action, 1)
    finish(engine, started(engine, action, 2), SUCCESS)

    free = [act(engine, recorded_of, one, attempt) for one, attempt in ((first, 1), (id, 2))]

    assert [one and one.is_free for one in free] == [True, False]


def test_a_retry_that_an_older_one_overlaps_has_failed_for_that(engine: sa.Engine) -> None:
    action = made(engine)
    id = failed_once(engine, action, 1)
    running = started(engine, action, 0)

    asked(engine, id)

    reason = f"no other attempt: overlap: {running} was running"
    assert end_of(engine, id) == ("failed", reason, "no ink")


def test_where_operations_may_overlap_a_retry_runs_beside_newer_ones(engine: sa.Engine) -> None:
    action = made(engine, overlap="allow")
    id = failed_once(engine, action)
    started(engine, action, 1)

    assert isinstance(asked(engine, id), Claim)


@pytest.mark.parametrize("triggerer", ["Scheduled action", "tests"])
def test_only_the_start_of_a_scheduled_one_ends_a_retry(engine: sa.Engine, triggerer: str) -> None:
    action = made(engine)
    id = failed_once(engine, action)
    newer = make_operation(engine, action, NOON + MINUTE, triggerer)
    if triggerer == "tests":
        assert isinstance(asked(engine, newer), Claim)
        finish(engine, newer, SUCCESS)

    assert isinstance(asked(engine, id), Claim)


def test_more_retries_than_may_wait_have_failed(engine: sa.Engine) -> None:
    action = made(engine, overlap="queue", max_waiting=1)
    first, second = failed_once(engine, action, 1), failed_once(engine, action, 2)
    started(engine, action, 0)
    update_operation(engine, first, not_before=database_now())

    asked(engine, first)
    asked(engine, second)

    states = sorted((row_of(engine, id)["state"] for id in (first, second)), key=str)
    assert states == ["failed", "pending"]
    assert owed(engine) == 1


def test_a_retry_of_a_deleted_action_has_failed(engine: sa.Engine) -> None:
    action = made(engine)
    id, other = failed_once(engine, action), make_operation(engine, action, NOON + MINUTE)

    delete(engine, action.uid, author())

    assert end_of(engine, id) == ("failed", "no other attempt: the action was deleted", "no ink")
    assert (failures_in_row(engine, action), owed(engine)) == (1, 1)
    assert row_of(engine, other)["state"] == "cancelled"


def test_a_retry_behind_one_that_a_pause_skips_has_failed_too(engine: sa.Engine) -> None:
    action = made(engine, overlap="queue")
    first = make_operation(engine, action, NOON, "Scheduled action")
    behind = failed_once(engine, action, 1)
    update_operation(engine, behind, waiting_for=first)
    set_active(engine, action.uid, active=False, author=author())

    asked(engine, first)
    act(engine, put_back.release_stranded)
    asked(engine, behind)

    assert end_of(engine, first)[0] == "skipped"
    assert end_of(engine, behind) == ("failed", "no other attempt: paused", "no ink")
    assert owed(engine) == 1


@pytest.mark.parametrize("why", ["paused", "recipient"])
def test_a_retry_of_a_task_of_the_application_has_failed(engine: sa.Engine, why: str) -> None:
    action = celery_action(engine, hooks=HOOKS)
    id = failed_once(engine, action)
    if why == "recipient":
        update_operation(engine, id, subject="nobody")
    else:
        set_active(engine, action.uid, active=False, author=replace(author(), celery=RULES))

    message = Message(id, 2, row_of(engine, id)["task"], "quick")
    assert act(engine, external_send.begin, [message], RULES, NO_ALERTS) == []

    assert end_of(engine, id) == ("failed", f"no other attempt: {why}", "no ink")
    assert owed(engine) == 1


def test_only_one_of_two_ends_it(engine: sa.Engine) -> None:
    action = made(engine)
    id = failed_once(engine, action)

    act(engine, refusals.fail, (id, 2), "paused", "no ink", NO_ALERTS)
    assert act(engine, refusals.fail, (id, 2), "paused", "no ink", NO_ALERTS) is None

    assert owed(engine) == 1
