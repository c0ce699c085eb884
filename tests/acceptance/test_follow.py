"""The shop's own worker follows: each occurrence runs once, or the record says why not."""

from datetime import timedelta

import pytest

from models.store import operations, presence
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.acceptance.processes import python
from tests.acceptance.shop import RAN_ONCE, Shop, begins

# What concerns Celery and its messages alone.
ON_SQLITE = pytest.mark.parametrize("store", ["sqlite"])


@pytest.fixture
def shop(installation: Installation) -> Shop:
    return Shop(installation)


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_followed_task_runs_once_and_ends_on_record(shop: Shop, pool: str) -> None:
    shop.worker(pool=pool)
    id = shop.due("close_day")

    shop.tick()

    row = shop.installation.becomes(id, "success")
    assert shop.said() == RAN_ONCE
    assert (row["attempt"], row["sendings"], row["progress"]) == (1, 1, 1.0)
    assert [(one["name"], one["state"]) for one in row["steps"]] == [("celery_task", "success")]


@ON_SQLITE
def test_a_worker_reports_what_its_tasks_take(shop: Shop) -> None:
    shop.worker(pool="solo")
    shop.is_followed()

    with reading(shop.installation.engine) as connection:
        known = presence.task_signatures(connection, timedelta(minutes=1))

    assert known["tasks.close_day", None] == ("shop", "tills=None")


@ON_SQLITE
def test_a_message_delivered_three_times_runs_once(shop: Shop) -> None:
    id = shop.due("close_day")
    shop.tick()
    kept = shop.installation.kept_messages("shop")
    assert shop.installation.repeat_messages("shop", times=2) == 3

    worker = shop.worker()
    worker.said("is not run here: taken", times=2)
    shop.installation.becomes(id, "success")
    shop.installation.put_messages(kept, queue="shop")
    worker.said("is not run here: taken", times=3)

    assert shop.said() == RAN_ONCE


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_task_that_fails_is_tried_again_by_the_policy_and_then_failed(
    shop: Shop, pool: str
) -> None:
    shop.worker(pool=pool)
    retry = {"retry": {"max_attempts": 2, "backoff": ["PT1S"]}}
    id = shop.due("write_letter", policy=retry)
    shop.tick()
    shop.installation.awaits(id, lambda row: row["attempt"] == 2)
    shop.installation.make_sendable(id)
    shop.tick()

    row = shop.installation.becomes(id, "failed")
    assert (row["error"], row["failures"]) == ("LookupError: no paper left", 2)
    assert shop.said() == ["write_letter begins"] * 2
    error = "LookupError: no paper left"
    assert shop.installation.attempts(id) == [(1, "failed", error), (2, "failed", error)]


@ON_SQLITE
def test_celery_s_own_retries_are_attempts_that_count_as_no_failure(shop: Shop) -> None:
    shop.worker()
    id = shop.due("order_more", step={"kwargs": {"fail": 2}})

    shop.tick()

    row = shop.installation.becomes(id, "success")
    assert shop.said() == [f"order_more try {number}" for number in (1, 2, 3)]
    assert (row["attempt"], row["failures"], row["sendings"]) == (3, 0, 0)
    states = [state for _, state, _ in shop.installation.attempts(id)]
    assert states == ["Celery's retry", "Celery's retry", "success"]


@ON_SQLITE
def test_celery_s_last_retry_fails_the_operation(shop: Shop) -> None:
    shop.worker()
    id = shop.due("order_more", step={"kwargs": {"fail": 9}})

    shop.tick()

    row = shop.installation.becomes(id, "failed")
    assert row["error"] == "ConnectionError: the supplier does not answer"
    assert len(shop.said()) == 4


@ON_SQLITE
def test_a_thread_beyond_its_time_limit_is_interrupted_and_failed(shop: Shop) -> None:
    shop.worker(pool="threads", settings={"SCHED_WORKER_SOFT_LIMIT_S": "0.5"})
    step = {"kwargs": {"tills": str(shop.gate())}}
    id = shop.due("close_day", step=step, policy={"time_limit": "PT1S"})

    shop.tick()

    assert shop.installation.becomes(id, "failed")["error"] == "time limit"
    assert shop.said() == ["close_day begins"]


def test_two_due_at_once_overlap_as_the_policy_says(shop: Shop) -> None:
    shop.worker()
    step = {"kwargs": {"tills": str(shop.gate())}}
    action = shop.action("close_day", step=step, policy={"overlap": "queue"})
    first = shop.installation.operation(action, minutes_ago=1)
    shop.tick()
    begins(shop)
    second = shop.installation.operation(action)
    shop.tick()
    waiting = shop.installation.awaits(second, lambda row: row["waiting_for"] == first)
    assert waiting["state"] == "pending"

    shop.gate().touch()

    assert shop.installation.all_end([first, second]) == ["success"] * 2
    assert shop.said() == RAN_ONCE * 2


@ON_SQLITE
def test_what_beat_or_anybody_else_sends_runs_as_it_always_did(shop: Shop) -> None:
    shop.worker()
    call = "import shop, tasks; tasks.close_day.apply_async(['Lyon'], queue='shop')"
    done = shop.installation.processes.run(python("-c", call), shop.settings, shop.folder)

    assert done.returncode == 0, done.stderr
    shop.says(*RAN_ONCE)
    assert shop.installation.rows() == []


def test_a_worker_that_does_not_follow_runs_it_and_it_is_handed_over(shop: Shop) -> None:
    shop.worker("shop")
    id = shop.due("close_day")

    shop.tick()

    shop.says(*RAN_ONCE)
    assert shop.installation.row(id)["state"] == "handed_over"


def test_a_worker_that_follows_after_all_claims_what_was_handed_over(shop: Shop) -> None:
    id = shop.due("close_day")
    shop.tick()
    assert shop.installation.row(id)["state"] == "handed_over"

    shop.worker()

    shop.installation.becomes(id, "success")
    assert shop.said() == RAN_ONCE


@ON_SQLITE
def test_the_log_of_a_run_has_the_traceback_or_what_the_task_returned(shop: Shop) -> None:
    shop.worker()
    failed, done = shop.due("write_letter"), shop.due("close_day", name="another")

    shop.tick()

    shop.installation.becomes(failed, "failed")
    shop.installation.becomes(done, "success")
    with reading(shop.installation.engine) as connection:
        lines = [one["message"] for one in operations.log_lines(connection, failed)]
        (said,) = operations.log_lines(connection, done)
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "LookupError: no paper left"
    assert any("in write_letter" in line for line in lines)
    assert said["message"] == "returned 'Paris is closed'"
