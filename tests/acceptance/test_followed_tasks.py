"""What a followed task knows of its operation, tells of itself, and may do in Celery's own ways."""

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import python
from tests.acceptance.shop import Shop

# Beside the example: an application of the same shop whose tasks know that they are followed.
COUNTING = """
from pathlib import Path
from threading import Event

import minutebook
from followed import app
from models import write


@app.task(name="tasks.count_letters")
def count_letters(shop, until=None):
    operation = minutebook.current_operation()
    operation.progress(done=3, total=12, message="three of twelve", phase="counting")
    write("count_letters", shop, f"{operation.attempt} {operation.occurrence_at.isoformat()}")
    while not Path(until).exists():
        Event().wait(0.1)


@app.task(name="tasks.watch")
def watch(shop):
    operation = minutebook.current_operation()
    while not operation.should_stop():
        Event().wait(0.1)
    write("watch", shop, f"stops with {operation.time_left().total_seconds():g} s left")


@app.task(name="tasks.stubborn")
def stubborn(shop):
    write("stubborn", shop, "begins")
    while True:
        try:
            Event().wait(0.1)
        except BaseException:
            pass


@app.task(
    name="tasks.call", autoretry_for=(OSError,), retry_kwargs={"max_retries": 2, "countdown": 0}
)
def call(shop):
    write("call", shop, "rings")
    raise OSError("nobody answers")


class Dressed(app.Task):
    def __call__(self, *args, **kwargs):
        try:
            return super().__call__(*args, **kwargs)
        finally:
            write("dressed", args[0], "undresses")


@app.task(name="tasks.dressed", base=Dressed)
def dressed(shop):
    write("dressed", shop, "works" if minutebook.current_operation() else "is not followed")


@app.task(name="tasks.unwilling", bind=True)
def unwilling(self, shop):
    from celery.exceptions import Reject

    raise Reject("not today", requeue=False)


@app.task(name="tasks.becomes", bind=True)
def becomes(self, shop, what):
    write("becomes", shop, what)
    dress = dressed.si(shop)
    raise self.replace({"a task": dress, "a chain": dress | dress.clone()}[what])
"""


@pytest.fixture
def store() -> str:
    """The tasks know no store."""
    return "sqlite"


@pytest.fixture
def shop(installation: Installation) -> Shop:
    shop = Shop(installation)
    (shop.folder / "counting.py").write_text(COUNTING)
    return shop


def test_a_task_knows_its_operation_and_tells_how_far_it_is(shop: Shop) -> None:
    shop.worker("counting")
    id = shop.due("count_letters", step={"kwargs": {"until": str(shop.gate())}})
    shop.tick()

    row = shop.installation.awaits(id, lambda row: row["processed"] == 3)
    shop.gate().touch()

    assert (row["total"], row["progress"]) == (12, 0.25)
    assert (row["message"], row["phase"]) == ("three of twelve", "counting")
    shop.installation.becomes(id, "success")
    assert shop.said() == [f"count_letters 1 {row['occurrence_at'].isoformat()}"]


def test_a_task_that_stops_in_time_is_partial(shop: Shop) -> None:
    shop.worker("counting")
    id = shop.due("watch", policy={"time_limit": "PT1S"})

    shop.tick()

    assert shop.installation.becomes(id, "partial")["reason"] == "time box"
    assert shop.said() == ["watch stops with 0 s left"]


def test_a_task_that_does_not_end_loses_its_operation_and_its_process(shop: Shop) -> None:
    limits = {"SCHED_WORKER_SOFT_LIMIT_S": "0.5", "SCHED_WORKER_HARD_LIMIT_S": "1.5"}
    worker = shop.worker("counting", settings=limits)
    id = shop.due("stubborn", policy={"time_limit": "PT1S", "retry": {"max_attempts": 3}})

    shop.tick()

    row = shop.installation.becomes(id, "failed")
    assert (row["reason"], row["attempt"]) == ("time limit", 1)
    worker.said("signal 9 (SIGKILL)")
    assert worker.is_alive


def test_retries_that_celery_makes_by_itself_are_attempts_too(shop: Shop) -> None:
    shop.worker("counting")
    id = shop.due("call")

    shop.tick()

    row = shop.installation.becomes(id, "failed")
    assert (row["attempt"], row["error"]) == (3, "OSError: nobody answers")
    assert shop.said() == ["call rings"] * 3


def test_a_task_class_of_one_s_own_is_followed(shop: Shop) -> None:
    shop.worker("counting")
    id = shop.due("dressed")

    shop.tick()

    shop.installation.becomes(id, "success")
    shop.says("dressed works", "dressed undresses")


def test_a_task_that_rejects_its_message_has_failed(shop: Shop) -> None:
    shop.worker("counting")
    id = shop.due("unwilling")

    shop.tick()

    assert shop.installation.becomes(id, "failed")["error"] == "rejected: not today"


def test_a_replacement_goes_on_with_the_operation(shop: Shop) -> None:
    shop.worker("counting")
    id = shop.due("becomes", step={"kwargs": {"what": "a task"}})

    shop.tick()

    row = shop.installation.becomes(id, "success")
    assert (row["attempt"], row["failures"]) == (2, 0)
    shop.says("becomes a task", "dressed works", "dressed undresses")
    attempts = [(number, state) for number, state, _ in shop.installation.attempts(id)]
    assert attempts == [(1, "replaced by tasks.dressed"), (2, "success")]


def test_a_replacement_that_cannot_be_followed_is_handed_over(shop: Shop) -> None:
    shop.worker("counting")
    id = shop.due("becomes", step={"kwargs": {"what": "a chain"}})

    shop.tick()

    row = shop.installation.becomes(id, "handed_over")
    assert row["reason"] == "replaced by celery.chain, which no worker follows"


def test_a_revoked_task_is_cancelled_and_its_action_can_run_again(shop: Shop) -> None:
    worker = shop.worker("counting")
    id = shop.due("dressed")
    call = f"from followed import app; app.control.revoke({str(id)!r})"
    shop.installation.processes.run(python("-c", call), shop.settings, shop.folder)
    worker.said("flagged as revoked")

    shop.tick()

    row = shop.installation.becomes(id, "cancelled")
    assert row["reason"] == "revoked in Celery"
    assert shop.said() == []


def test_a_task_that_its_worker_does_not_know_fails(shop: Shop) -> None:
    shop.worker("counting")
    id = shop.due("nowhere")

    shop.tick()

    row = shop.installation.becomes(id, "failed")
    assert "does not know the task tasks.nowhere" in row["error"]
