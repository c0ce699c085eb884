"""What tests of statements do to a filled database, and what they ask of its statements."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from models.celery_task import CeleryRules
from models.operation import OperationState
from models.sql import database_now
from models.store import notices
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import (
    external_send,
    external_worker,
    heartbeat,
    jobs,
    refusals,
    reserve,
    take,
)
from models.store.operations.end import Outcome
from models.store.operations.record import overtake
from models.store.operations.reserve import Message
from models.store.operations.start_checks import TAKEN, NotClaimed, NotStarted
from models.store.operations.take import Claim, ClaimRequest
from models.store.scope import WHOLE_INSTALLATION
from scheduler.changes import Change
from scheduler.changes.change import create_all
from scheduler.on_demand import cancel, restart
from tests import factories
from tests import followed_tasks as followed
from tests.attempts import beat, end
from tests.celery_messages import TASK, follow_by_name
from tests.factories import author, make_action, make_document, make_operation, update_operation
from tests.integration.statements.conftest import Filled
from tests.integration.statements.plans import Statements
from tests.ticks import MINUTE
from tests.transactions import finish

RULES = CeleryRules(("shop.*",))
SUCCESS = Outcome(OperationState.SUCCESS)
FAILED = Outcome(OperationState.FAILED, error="away", is_failure=True)
JOB = {"job": {"url": "https://example.com/feed"}}


def make(filled: Filled, name: str, **changes: Any) -> tuple[Change, UUID, UUID]:
    action = make_action(filled.engine, name=name, **changes)
    first = make_operation(filled.engine, action, filled.now - 2 * MINUTE, "Scheduled action")
    second = make_operation(filled.engine, action, filled.now - MINUTE, "Scheduled action")
    return action, first, second


def claimed(filled: Filled, id: UUID) -> Claim | str:
    return factories.claimed(filled.engine, id)


def ended(filled: Filled, id: UUID) -> list[Message]:
    return finish(filled.engine, id, SUCCESS).released


def of_the_application(filled: Filled, name: str, count: int = 1) -> list[UUID]:
    """Record operations of a task of the user's own that may be sent now."""
    document = make_document(name=name, operations={"celery_task": {"task": TASK}})
    action = create_all(filled.engine, [document], replace(author(), celery=RULES))[0]
    minutes = [filled.now - n * MINUTE for n in range(1, count + 1)]
    ids = [make_operation(filled.engine, action, at, "Scheduled action") for at in minutes]
    for id in ids:
        update_operation(filled.engine, id, not_before=database_now(-1.0))
    return ids


def assert_indexed(statements: Statements, *indexes: str) -> None:
    """Check that something was executed, that nothing was read whole, and by which indexes."""
    assert statements.seen
    scans, used = statements.scans(), statements.indexes()
    assert not scans, scans
    assert set(indexes) <= used, used


# Each of these is done among many of its kind, and by the statistics of a quiet moment.


def mark_and_overtake(filled: Filled, statements: Statements) -> None:
    action, *ids = make(filled, "marked")
    for id in ids:
        update_operation(filled.engine, id, state="queued")
    messages = [Message(id, 1, "execute_scheduled_action_quick", "quick") for id in ids]

    with statements.captured(), filled.engine.begin() as connection:
        reserve.mark_sent(connection, messages)
        reserve.release_unsent(connection, messages)
        overtaken = overtake(connection, [(action.uid, filled.now)])

    assert overtaken == 2


def claim_together(filled: Filled, statements: Statements) -> None:
    ids = [make(filled, f"together {number}")[1] for number in range(3)]
    wanted = [ClaimRequest(id, 1, "tests") for id in ids]

    with statements.captured(), filled.engine.begin() as connection:
        found = take.lock_unstarted(connection, wanted)
        started = take.start_all(connection, wanted, {})

    assert len(found) == len(started) == len(wanted)


def run_and_wait(filled: Filled, statements: Statements) -> None:
    _, first, second = make(filled, "claimed", policy={"overlap": "queue"})
    story = heartbeat.ProgressUpdate({"message": "half"}, [{"message": "a line"}])

    with statements.captured():
        claimed(filled, first)
        waits = claimed(filled, second)
        with filled.engine.begin() as connection:
            heartbeat.memory(connection, filled.due[0], None)
            beat(connection, first, 1)
            beat(connection, first, 1, story)
        released = ended(filled, first)
        with filled.engine.begin() as connection:
            skipped = refusals.skip(connection, second, released[0].attempt, "tests")

    assert skipped is not None
    assert (waits, [one.id for one in released]) == (NotClaimed.WAITS, [second])


def retry_and_cancel(filled: Filled, statements: Statements) -> None:
    _, first, second = make(filled, "asked")
    claimed(filled, first)
    finish(filled.engine, first, FAILED)

    with statements.captured():
        restart.retry(filled.engine, first, WHOLE_INSTALLATION, "tests")
        cancel.cancel(filled.engine, first, WHOLE_INSTALLATION, "tests")
        claimed(filled, second)
        cancel.cancel(filled.engine, second, WHOLE_INSTALLATION, "tests")


def follow(filled: Filled, statements: Statements) -> None:
    follow_by_name(filled.engine, TASK)
    ids = of_the_application(filled, "followed", 3)

    with statements.captured(), filled.engine.begin() as connection:
        reserved = reserve.reserve_sendable(connection, 3, only=ids)
        begun = external_send.begin(connection, reserved, RULES, NO_ALERTS)
        early = followed.take(connection, ids[0], 2)
        found = followed.take(connection, ids[0])
        assert not isinstance(found, NotStarted)
        external_worker.beat(connection, found.key, {"done": 1, "total": 2})
        followed.finish(connection, found.key, {"outcome": "retry"})
        external_worker.has_ended(connection, found.key)

    assert (len(begun), early) == (3, TAKEN)


def notify(filled: Filled, statements: Statements) -> None:
    hooks = {"on_failure": [{"mail": "ann@example.com"}], "alert_after": 1}
    _, first, second = make(filled, "told", hooks=hooks, policy={"overlap": "allow"})
    claimed(filled, first)
    claimed(filled, second)

    with statements.captured(), filled.engine.begin() as connection:
        owed = end(connection, first, 1, FAILED, alerts=NO_ALERTS).owed
        notices.mark_sent(connection, owed)
        notices.send_soon(connection, owed)
        taken = [one for one in (notices.begin(connection, one.id, 1) for one in owed) if one]
        notices.put_off(connection, taken[0], "later")
        notices.finish(connection, taken[1])
        notices.of_operations(connection, [first])
        end(connection, second, 1, SUCCESS, alerts=NO_ALERTS)

    assert [one.kind for one in taken] == ["run_ended", "finding_began"]


def look_for_jobs(filled: Filled, statements: Statements) -> None:
    _, first, _ = make(filled, "a job", operations=JOB)
    update_operation(filled.engine, first, task="job", not_before=database_now(-1.0))

    with statements.captured(), filled.engine.begin() as connection:
        offered = jobs.offers(connection, {(None, "quick"): 500, (1, "quick"): 3, (1, "crawl"): 1})

    assert offered


# Each with the indexes by which it finds its rows; what runs is as few as the workers' slots.
ACTS = [
    (mark_and_overtake, {"operations_unstarted"}),
    (claim_together, set[str]()),
    (run_and_wait, {"operations_waiting", "operations_one_running"}),
    (retry_and_cancel, set[str]()),
    (follow, set[str]()),
    (notify, set[str]()),
    (look_for_jobs, {"operations_jobs"}),
]
