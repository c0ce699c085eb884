"""What a followed task knows of its operation, tells of itself, and may do in Celery's own ways."""

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import python, until
from tests.acceptance.shop import Shop

# The tasks know no store.
pytestmark = pytest.mark.parametrize("store", ["sqlite"])

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


def test_a_task_that_does_not_end_loses_its_operation_and_its_process(shop: Shop) -> None:
    limits = {"SCHED_WORKER_SOFT_LIMIT_S": "0.5", "SCHED_WORKER_HARD_LIMIT_S": "1.5"}
    worker = shop.worker("counting", settings=limits)
    id = shop.due("stubborn", policy={"time_limit": "PT1S", "retry": {"max_attempts": 3}})

    shop.tick()

    row = shop.installation.becomes(id, "failed")
    assert (row["reason"], row["attempt"]) == ("time limit", 1)
    worker.said("signal 9 (SIGKILL)")
    assert worker.is_alive


def test_each_task_ends_as_celery_means_it(shop: Shop) -> None:
    shop.worker("counting")
    ids = {
        name: shop.due(task, name=name, **({"step": {"kwargs": given}} if given else {}))
        for name, task, given in (
            ("retried", "call", None),
            ("of a class of one's own", "dressed", None),
            ("rejected", "unwilling", None),
            ("replaced", "becomes", {"what": "a task"}),
            ("replaced by a chain", "becomes", {"what": "a chain"}),
            ("unknown", "nowhere", None),
        )
    }

    shop.tick()

    shop.installation.all_end(list(ids.values()))
    rows = {name: shop.installation.row(id) for name, id in ids.items()}
    assert {name: (row["state"], row["attempt"]) for name, row in rows.items()} == {
        "retried": ("failed", 3),
        "of a class of one's own": ("success", 1),
        "rejected": ("failed", 1),
        "replaced": ("success", 2),
        "replaced by a chain": ("handed_over", 2),
        "unknown": ("failed", 1),
    }
    assert (rows["retried"]["error"], shop.said().count("call rings")) == (
        "OSError: nobody answers", 3,
    )  # fmt: skip
    assert rows["rejected"]["error"] == "rejected: not today"
    assert "does not know the task tasks.nowhere" in rows["unknown"]["error"]
    chain = rows["replaced by a chain"]["reason"]
    assert chain == "replaced by celery.chain, which no worker follows"
    assert rows["replaced"]["failures"] == 0
    attempts = [(number, state) for number, state, _ in shop.installation.attempts(ids["replaced"])]
    assert attempts == [(1, "replaced by tasks.dressed"), (2, "success")]
    # The one of its own and the replacement; the parts of the chain are followed by none.
    until(lambda: shop.said().count("dressed works") == 2, lambda: str(shop.said()))
    until(lambda: shop.said().count("dressed undresses") >= 2, lambda: str(shop.said()))


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
