"""The shop's own worker follows: each occurrence runs once, or the record says why not.

Server or database are away while tasks begin, run and end: no slot waits for them. Tasks of
celery-once and celery-singleton, which override how they are sent, are followed as well.
"""

import signal
from uuid import UUID

import pytest

from tests.acceptance.processes import Process, thaw_tree, until
from tests.acceptance.shop import RAN_ONCE, Shop
from tests.acceptance.standstill import standing_still

# No heartbeat comes between, and no lease runs out.
CALM = {"SCHED_WORKER_HEARTBEAT_S": "100", "SCHED_WORKER_LEASE_S": "300"}
SLOTS = 2
BACK = "its message goes back to its queue"
# Beside the example: the same shop with a task of each package.
ALONE = """
import os

from celery_once import QueueOnce
from celery_singleton import Singleton
from followed import app
from models import write

URL = os.environ["SHOP_BROKER_URL"]
app.conf.ONCE = {
    "backend": "celery_once.backends.Redis",
    "settings": {"url": URL, "default_timeout": 3600},
}
app.conf.singleton_backend_url = URL


@app.task(name="tasks.once", base=QueueOnce)
def once(shop):
    write("once", shop, "runs")


@app.task(name="tasks.single", base=Singleton)
def single(shop):
    write("single", shop, "runs")
"""
LOCKS = ("qo_*", "SINGLETON*")


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_followed_task_runs_once_and_ends_on_record(shop: Shop, pool: str) -> None:
    shop.worker(pool=pool)
    id = shop.due("close_day")

    shop.tick()

    row = shop.installation.becomes(id, "success")
    assert shop.said() == RAN_ONCE
    assert (row["attempt"], row["sendings"], row["progress"]) == (1, 1, 1.0)
    assert [(one["name"], one["state"]) for one in row["steps"]] == [("celery_task", "success")]


def all_slots_busy(shop: Shop) -> tuple[Process, list[UUID]]:
    """Return a worker all of whose slots run a task, and the tasks' operations."""
    worker = shop.worker(settings=CALM)
    ids = [
        shop.due("close_day", name=f"day {n}", step={"kwargs": {"tills": str(shop.gate())}})
        for n in range(SLOTS)
    ]
    shop.tick()
    until(lambda: shop.said().count("close_day begins") == SLOTS, "all slots are busy")
    return worker, ids


def test_the_application_s_own_tasks_run_while_ends_wait_for_the_database(shop: Shop) -> None:
    worker, ids = all_slots_busy(shop)

    with standing_still(shop.installation):
        shop.gate().touch()
        shop.python("import shop, tasks; tasks.write_letter.apply_async(['Lyon'], queue='shop')")
        until(lambda: "write_letter begins" in shop.said(), lambda: worker.text()[-2000:], 15.0)

    assert shop.installation.all_end(ids) == ["success"] * SLOTS
    assert [shop.installation.row(id)["attempt"] for id in ids] == [1] * SLOTS
    assert sorted(shop.said()) == sorted([*RAN_ONCE * SLOTS, "write_letter begins"])


def test_a_worker_that_stops_reports_the_ends_that_wait(shop: Shop) -> None:
    worker, ids = all_slots_busy(shop)
    shop.web().kill()
    shop.gate().touch()
    until(lambda: shop.said().count("close_day ends") == SLOTS, "both end")

    worker.send(signal.SIGTERM)
    worker.said("Warm shutdown")
    shop.web(CALM)

    assert worker.ended() == 0
    assert shop.installation.all_end(ids) == ["success"] * SLOTS


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "task", ["close_day", "count_stock"], ids=["acknowledged_early", "acknowledged_late"]
)
def test_a_message_goes_back_to_its_queue_while_the_server_is_away(shop: Shop, task: str) -> None:
    id = shop.due(task)
    worker = shop.worker(is_served=False)
    worker.said("start `minutebook up` here, or set MINUTEBOOK_URL and MINUTEBOOK_TOKEN")
    shop.tick()
    worker.said(BACK)
    assert shop.said() == []

    shop.web()

    # Nobody was known to follow it when it was sent.
    assert shop.installation.becomes(id, "success")["sendings"] == 1
    assert shop.said() == [f"{task} begins", f"{task} ends"]


def locks(shop: Shop) -> list[bytes]:
    with shop.installation.broker.client() as client:
        return [key for pattern in LOCKS for key in client.keys(pattern)]


@pytest.mark.parametrize("task", ["once", "single"])
def test_a_task_that_is_sent_once_at_most_runs_once_after_an_outage_and_leaves_no_lock(
    shop: Shop, task: str
) -> None:
    (shop.folder / "alone.py").write_text(ALONE)
    worker = shop.worker("alone")
    worker.freeze_tree()
    action = shop.action(task)
    first = shop.installation.operation(action, minutes_ago=1)
    shop.tick()

    with standing_still(shop.installation):
        thaw_tree(worker.pid)
        worker.said(BACK)

    # A claim that the database committed unheard is given back, and sent again by a tick.
    shop.installation.daemon(shop.settings)
    shop.installation.becomes(first, "success")
    second = shop.installation.operation(action)
    shop.installation.becomes(second, "success")
    assert shop.said() == [f"{task} runs"] * 2
    until(lambda: not locks(shop), lambda: str(locks(shop)))
    shop.python(f"import alone; alone.{task}.apply_async(['Lyon'], queue='shop')")
    shop.says(*[f"{task} runs"] * 3)
