"""What a followed task knows of its operation, tells of itself, and may do or raise in Celery."""

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until
from tests.acceptance.shop import Shop

# The tasks know no store.
pytestmark = pytest.mark.parametrize("store", ["sqlite"])

# Beside the example: an application of the same shop whose tasks know that they are followed.
COUNTING = """
import time
from asyncio import CancelledError
from pathlib import Path
from threading import Event

import minutebook
from celery.exceptions import Reject
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
    raise Reject("not today", requeue=False)


@app.task(name="tasks.becomes", bind=True)
def becomes(self, shop, what):
    write("becomes", shop, what)
    dress = dressed.si(shop)
    raise self.replace({"a task": dress, "a chain": dress | dress.clone()}[what])


# All of these may be begun again when their worker is lost.
class Mute(Exception):
    def __str__(self):
        raise ValueError("nothing to say")


RAISED = {
    "cancels itself": CancelledError("by its loop"),
    "is interrupted": KeyboardInterrupt(),
    "says nothing": Mute(),
    "exits": SystemExit(3),
}


@app.task(name="tasks.odd", acks_late=True)
def odd(kind):
    write("odd", "Paris", kind)
    raise RAISED[kind]


@app.task(name="tasks.later", bind=True, acks_late=True)
def later(self, gate):
    write("later", "Paris", "looks")
    if not Path(gate).exists():
        raise Reject("its file is not there yet", requeue=True)


@app.task(name="tasks.slow", acks_late=True, time_limit=1)
def slow():
    write("slow", "Paris", "begins")
    # Its time limit ends it after one.
    time.sleep(30)


@app.task(name="tasks.deep", bind=True, acks_late=True)
def deep(self, depth):
    write("deep", "Paris", str(depth))
    if depth:
        self.run(depth - 1)


@app.task(name="tasks.parent", bind=True)
def parent(self):
    child.apply_async(headers=self.request.headers)
    write("parent", "Paris", "ends")


@app.task(name="tasks.child")
def child():
    write("child", "Paris", "runs")


@app.task(name="tasks.again", bind=True)
def again(self, how):
    write("again", how, str(self.request.retries))
    if self.request.retries == 0:
        if how == "goes on":
            self.retry(countdown=0, throw=False)
        if how == "with headers":
            raise self.retry(countdown=0, headers={"shop": "Paris"})
        if how == "catches it":
            try:
                raise self.retry(countdown=0)
            except Exception:
                pass
"""


@pytest.fixture
def shop(installation: Installation) -> Shop:
    shop = Shop(installation)
    (shop.folder / "counting.py").write_text(COUNTING)
    return shop


@pytest.fixture(autouse=True)
def worker(shop: Shop) -> Process:
    """A worker that ends soon what goes beyond its time limit."""
    limits = {"SCHED_WORKER_SOFT_LIMIT_S": "0.5", "SCHED_WORKER_HARD_LIMIT_S": "1.5"}
    return shop.worker("counting", settings=limits)


def test_a_task_knows_its_operation_and_tells_how_far_it_is(shop: Shop) -> None:
    id = shop.due("count_letters", step={"kwargs": {"until": str(shop.gate())}})
    shop.tick()

    row = shop.installation.awaits(id, lambda row: row["processed"] == 3)
    shop.gate().touch()

    assert (row["total"], row["progress"]) == (12, 0.25)
    assert (row["message"], row["phase"]) == ("three of twelve", "counting")
    shop.installation.becomes(id, "success")
    assert shop.said() == [f"count_letters 1 {row['occurrence_at'].isoformat()}"]


def test_a_task_that_does_not_end_loses_its_operation_and_its_process(
    shop: Shop, worker: Process
) -> None:
    id = shop.due("stubborn", policy={"time_limit": "PT1S", "retry": {"max_attempts": 3}})

    shop.tick()

    row = shop.installation.becomes(id, "failed")
    assert (row["reason"], row["attempt"]) == ("time limit", 1)
    worker.said("signal 9 (SIGKILL)")
    assert worker.is_alive


def test_each_task_ends_as_celery_means_it(shop: Shop) -> None:
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
    assert rows["retried"]["error"] == "OSError: nobody answers"
    assert shop.said().count("call rings") == 3
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


def test_a_revoked_task_is_cancelled_and_its_action_can_run_again(
    shop: Shop, worker: Process
) -> None:
    id = shop.due("dressed")
    shop.python(f"from followed import app; app.control.revoke({str(id)!r})")
    worker.said("flagged as revoked")

    shop.tick()

    row = shop.installation.becomes(id, "cancelled")
    assert row["reason"] == "revoked in Celery"
    assert shop.said() == []


def test_whatever_a_task_raises_itself_fails_it_and_is_no_loss_of_its_worker(shop: Shop) -> None:
    told = {
        "cancels itself": "CancelledError: by its loop",
        "is interrupted": "KeyboardInterrupt: ",
        "says nothing": "Mute",
        "exits": "SystemExit: 3",
    }
    ids = [shop.due("odd", name=kind, step={"args": [kind]}) for kind in told]

    shop.tick()

    assert shop.installation.all_end(ids) == ["failed"] * 4
    rows = [shop.installation.row(id) for id in ids]
    assert [row["error"] for row in rows] == list(told.values())
    assert [(row["attempt"], row["losses"]) for row in rows] == [(1, 0)] * 4
    assert sorted(shop.said()) == sorted(f"odd {kind}" for kind in told)


def test_a_task_that_puts_its_message_back_is_sent_again_by_the_next_tick(shop: Shop) -> None:
    id = shop.due("later", step={"args": [str(shop.gate())]})
    shop.tick()
    row = shop.installation.awaits(id, lambda row: row["attempt"] == 2)
    assert (row["state"], row["reason"], row["failures"]) == ("pending", "put back by its task", 0)

    shop.gate().touch()
    shop.tick()

    assert shop.installation.becomes(id, "success")["attempt"] == 2
    assert shop.said() == ["later looks"] * 2


def test_a_task_that_celery_s_own_time_limit_ends_has_failed_and_is_not_begun_again(
    shop: Shop,
) -> None:
    id = shop.due("slow", step={"args": []})

    shop.tick()

    row = shop.installation.becomes(id, "failed")
    assert row["error"] == "Celery's own time limit ended the task"
    assert (row["attempt"], row["losses"]) == (1, 0)
    assert shop.said() == ["slow begins"]


def test_what_a_task_sends_or_calls_by_itself_is_the_next_attempt_or_runs_as_ever(
    shop: Shop,
) -> None:
    ways = ["goes on", "with headers", "catches it"]
    ids = [shop.due("again", name=way, step={"args": [way]}) for way in ways]
    ids.append(shop.due("deep", name="deep", step={"args": [2]}))
    ids.append(shop.due("parent", name="parent", step={"args": []}))

    shop.tick()

    assert shop.installation.all_end(ids) == ["success"] * 5
    assert [shop.installation.row(id)["attempt"] for id in ids] == [2, 2, 2, 1, 1]
    said = ["again 0"] * 3 + ["again 1"] * 3 + ["child runs", "deep 0", "deep 1", "deep 2"]
    until(lambda: sorted(shop.said()) == [*said, "parent ends"], lambda: str(shop.said()))
