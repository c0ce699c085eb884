"""The shop's own worker follows: each occurrence runs once, or the record says why not."""

import json

import pytest

from models.store import operations
from runtime.database import reading
from tests.acceptance.processes import python, until
from tests.acceptance.shop import RAN_ONCE, Shop

# A worker has two slots, and keeps four messages for each.
MORE_THAN_ONE_TAKES = 20
# What concerns Celery and its messages alone.
ON_SQLITE = pytest.mark.parametrize("store", ["sqlite"])


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
def test_in_a_rolling_deploy_both_workers_read_one_queue_and_nothing_runs_twice(
    shop: Shop,
) -> None:
    follows = shop.worker(name="new")
    shop.worker("shop", name="old")
    ids = [shop.due("close_day", name=f"day {n}") for n in range(MORE_THAN_ONE_TAKES)]
    shop.tick()
    until(lambda: len(shop.said()) == 2 * len(ids), lambda: str(shop.said()))
    new = {one.pid for one in shop.pool(follows)}
    ran = [json.loads(line)["pid"] in new for line in shop.journal.read_text().splitlines()]
    claimed = sum(ran) // 2
    until(lambda: shop.installation.count_of("success") == claimed, f"{claimed} of them end")

    # The hour is over in which a worker that follows might claim the others.
    left = [id for id in ids if shop.installation.row(id)["state"] == "queued"]
    shop.installation.make_sendable(*left)
    shop.tick()

    assert shop.installation.all_end(left) == ["handed_over"] * len(left)
    assert (len(left) + claimed, bool(left), bool(claimed)) == (len(ids), True, True)
    assert sorted(shop.said()) == sorted(RAN_ONCE * len(ids))


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
