"""What is given is found by its key, also by statistics of a moment when nothing was unstarted.

A database is analysed at any time, most likely when it is quiet. By such statistics the indexes of
what is unstarted, running or owed are empty, which looks cheaper than a key: at the next full
minute, each of many rows would be looked for among all of them.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from broker.app import configure
from broker.in_use import settings_in_use
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
from models.store.operations.start_checks import NotClaimed, NotStarted
from models.store.operations.take import ClaimRequest
from models.store.scope import WHOLE_INSTALLATION
from scheduler.changes.change import create_all
from scheduler.on_demand import cancel, restart
from tests import followed_tasks as followed
from tests.attempts import beat, end
from tests.celery_messages import TASK, allowing, follow_by_name
from tests.factories import author, make_document, make_operation, update_operation
from tests.integration.statements.acts import SUCCESS, claimed, ended, make
from tests.integration.statements.conftest import MINUTE, Filled
from tests.integration.statements.plans import Statements

RULES = CeleryRules(("shop.*",))


@pytest.fixture(autouse=True)
def _allowed(quiet: Filled) -> Iterator[None]:
    before = settings_in_use()
    configure(allowing(before, "shop.*"))
    yield
    configure(before)


@pytest.fixture
def asked(quiet: Filled) -> Statements:
    """Nothing captured yet."""
    return Statements(quiet.engine)


# They hold no more than the workers have processes, and what is on its way to one.
FEW = {"operations_one_running", "operations_heartbeat_stale"}


def assert_found_by_keys(statements: Statements, *indexes: str) -> None:
    """Check that no statement read all that is in an index of operations or of notices."""
    reads = statements.reads()
    whole = {
        f"{read.table} by {read.index}: {text}"
        for text, found in reads.items()
        for read in found
        if read.is_whole and read.table in {"operations", "notices"} and read.index not in FEW
    }
    assert reads
    assert not whole
    assert set(indexes) <= statements.indexes()


def messages_to(quiet: Filled, number: int) -> list[Message]:
    """Return messages of operations that are queued."""
    made = [make(quiet, f"{number}: {one}")[1] for one in range(3)]
    for id in made:
        update_operation(quiet.engine, id, state="queued")
    return [Message(id, 1, "execute_scheduled_action_quick", "quick") for id in made]


def test_what_was_sent_or_overtaken(quiet: Filled, asked: Statements) -> None:
    messages = messages_to(quiet, 1)
    action, *_ = make(quiet, "overtaken")

    with asked.captured(), quiet.engine.begin() as connection:
        reserve.mark_sent(connection, messages)
        reserve.release_unsent(connection, messages)
        overtaken = overtake(connection, [(action.uid, quiet.now - MINUTE)])

    assert overtaken == 1
    # It holds what runs: as many as workers run at once.
    assert_found_by_keys(asked, "operations_unstarted")


def test_claims_in_one_transaction(quiet: Filled, asked: Statements) -> None:
    wanted = [ClaimRequest(one.id, 1, "tests") for one in messages_to(quiet, 2)]

    with asked.captured(), quiet.engine.begin() as connection:
        found = take.lock_unstarted(connection, wanted)
        started = take.start_all(connection, wanted, {})

    assert len(found) == len(started) == len(wanted)
    assert_found_by_keys(asked)


def test_an_attempt_from_its_claim_to_its_end(quiet: Filled, asked: Statements) -> None:
    _, first, second = make(quiet, "claimed", policy={"overlap": "queue"})
    story = heartbeat.ProgressUpdate({"message": "half"}, [{"message": "a line"}])

    with asked.captured():
        claimed(quiet, first)
        waits = claimed(quiet, second)
        with quiet.engine.begin() as connection:
            beat(connection, first, 1)
            beat(connection, first, 1, story)
        released = ended(quiet, first)
        with quiet.engine.begin() as connection:
            skipped = refusals.skip(connection, second, released[0].attempt, "tests")

    assert skipped is not None
    assert (waits, [one.id for one in released]) == (NotClaimed.WAITS, [second])
    assert_found_by_keys(asked, "operations_waiting", "operations_one_running")


def test_what_a_person_asks_of_one_operation(quiet: Filled, asked: Statements) -> None:
    _, first, second = make(quiet, "asked")
    claimed(quiet, first)
    with quiet.engine.begin() as connection:
        end(connection, first, 1, Outcome(OperationState.FAILED, is_failure=True), alerts=NO_ALERTS)

    with asked.captured():
        restart.retry(quiet.engine, first, WHOLE_INSTALLATION, "tests")
        cancel.cancel(quiet.engine, first, WHOLE_INSTALLATION, "tests")
        claimed(quiet, second)
        cancel.cancel(quiet.engine, second, WHOLE_INSTALLATION, "tests")

    assert_found_by_keys(asked)


def test_a_task_of_the_user_s_own(quiet: Filled, asked: Statements) -> None:
    follow_by_name(quiet.engine, TASK)
    document = make_document(name="followed", operations={"celery_task": {"task": TASK}})
    change = replace(author(), celery=RULES)
    action = create_all(quiet.engine, [document], change)[0]
    ids = [make_operation(quiet.engine, action, quiet.now - n * MINUTE) for n in (1, 2, 3)]
    for id in ids:
        update_operation(quiet.engine, id, not_before=database_now(-1.0))

    with asked.captured(), quiet.engine.begin() as connection:
        reserved = reserve.reserve_sendable(connection, 3, only=ids)
        begun = external_send.begin(connection, reserved, RULES, NO_ALERTS)
        followed.take(connection, ids[0], 2)
        found = followed.take(connection, ids[0])
        assert not isinstance(found, NotStarted)
        external_worker.beat(connection, found.key, {"done": 1, "total": 2})
        followed.finish(connection, found.key, {"outcome": "retry"})
        external_worker.has_ended(connection, found.key)

    assert begun
    assert_found_by_keys(asked)


def test_a_notice_from_being_owed_to_its_delivery(quiet: Filled, asked: Statements) -> None:
    hooks = {"on_failure": [{"mail": "ann@example.com"}], "alert_after": 1}
    _, first, second = make(quiet, "told", hooks=hooks, policy={"overlap": "allow"})
    failed = Outcome(OperationState.FAILED, error="away", is_failure=True)
    claimed(quiet, first)
    claimed(quiet, second)

    with asked.captured(), quiet.engine.begin() as connection:
        owed = end(connection, first, 1, failed, alerts=NO_ALERTS).owed
        notices.mark_sent(connection, owed)
        notices.send_soon(connection, owed)
        taken = [one for one in (notices.begin(connection, one.id, 1) for one in owed) if one]
        notices.put_off(connection, taken[0], "later")
        notices.finish(connection, taken[1])
        end(connection, second, 1, SUCCESS, alerts=NO_ALERTS)

    assert [one.kind for one in taken] == ["run_ended", "finding_began"]
    assert_found_by_keys(asked)


def test_jobs_that_workers_look_for(quiet: Filled, asked: Statements) -> None:
    job = {"job": {"url": "https://example.com/feed"}}
    _, first, _ = make(quiet, "a job", operations=job)
    update_operation(quiet.engine, first, task="job", not_before=database_now(-1.0))

    with asked.captured(), quiet.engine.begin() as connection:
        offered = jobs.offers(connection, {(None, "quick"): 5, (1, "quick"): 3, (1, "crawl"): 1})

    assert offered
    assert_found_by_keys(asked, "operations_jobs")
