"""What a followed task raises that Celery knows its own way of: each ends as Celery means it."""

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import until
from tests.acceptance.shop import Shop

# The tasks know no store.
pytestmark = pytest.mark.parametrize("store", ["sqlite"])

# All of them may be begun again when their worker is lost.
ODD = """
import sys
import time
from asyncio import CancelledError
from pathlib import Path

from celery.exceptions import Reject
from followed import app
from models import write


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
    (shop.folder / "odd.py").write_text(ODD)
    return shop


def test_whatever_a_task_raises_itself_fails_it_and_is_no_loss_of_its_worker(shop: Shop) -> None:
    shop.worker("odd")
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
    shop.worker("odd")
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
    shop.worker("odd")
    id = shop.due("slow", step={"args": []})

    shop.tick()

    row = shop.installation.becomes(id, "failed")
    assert row["error"] == "Celery's own time limit ended the task"
    assert (row["attempt"], row["losses"]) == (1, 0)
    assert shop.said() == ["slow begins"]


def test_what_a_task_sends_or_calls_by_itself_is_the_next_attempt_or_runs_as_ever(
    shop: Shop,
) -> None:
    shop.worker("odd")
    ways = ["goes on", "with headers", "catches it"]
    ids = [shop.due("again", name=way, step={"args": [way]}) for way in ways]
    ids.append(shop.due("deep", name="deep", step={"args": [2]}))
    ids.append(shop.due("parent", name="parent", step={"args": []}))

    shop.tick()

    assert shop.installation.all_end(ids) == ["success"] * 5
    assert [shop.installation.row(id)["attempt"] for id in ids] == [2, 2, 2, 1, 1]
    said = ["again 0"] * 3 + ["again 1"] * 3 + ["child runs", "deep 0", "deep 1", "deep 2"]
    until(lambda: sorted(shop.said()) == [*said, "parent ends"], lambda: str(shop.said()))
