"""Killed at every point: each occurrence of a followed task runs once, or the record says why."""

import signal

import pytest

from models.sql import database_now
from tests.acceptance.processes import ROOT, kill, python, until
from tests.acceptance.proxy import Proxy
from tests.acceptance.shop import RAN_ONCE, Shop, begins, killed
from tests.factories import update_operation


def test_killed_in_the_task_it_is_lost_with_its_lease_and_does_not_begin_twice(shop: Shop) -> None:
    worker = shop.worker()
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}})
    shop.tick()
    begins(shop)

    killed(shop, worker)
    shop.installation.daemon(shop.settings)

    row = shop.installation.becomes(id, "failed")
    assert row["error"].startswith("lost: worker ")
    shop.gate().touch()
    shop.worker()
    assert shop.said() == ["close_day begins"]


def test_a_process_of_the_pool_that_is_killed_costs_its_own_task_alone_at_once(shop: Shop) -> None:
    worker = shop.worker()
    gates = [shop.gate("one"), shop.gate("two")]
    ids = [
        shop.due("close_day", name=gate.name, step={"kwargs": {"tills": str(gate)}})
        for gate in gates
    ]
    shop.tick()
    until(lambda: len(shop.said()) == 2, "both begin")
    rows = [shop.installation.row(id) for id in ids]

    kill(int(rows[0]["worker"].rpartition(":")[2]))
    # No daemon runs: its parent says it.
    lost = shop.installation.becomes(ids[0], "failed")
    gates[1].touch()

    assert lost["error"] == "lost: its process is gone; step celery_task was running"
    assert shop.installation.becomes(ids[1], "success")["attempt"] == 1
    assert worker.is_alive


def test_a_task_whose_worker_is_killed_is_tried_again_by_its_policy(shop: Shop) -> None:
    worker = shop.worker()
    retry = {"retry": {"max_attempts": 3, "backoff": ["PT1M"]}}
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}}, policy=retry)
    shop.tick()
    begins(shop)

    killed(shop, worker)
    shop.installation.daemon(shop.settings)

    row = shop.installation.awaits(id, lambda row: row["attempt"] == 2)
    assert (row["state"], row["failures"], row["losses"]) == ("pending", 1, 0)


def test_a_worker_that_stops_warm_ends_its_tasks(shop: Shop) -> None:
    worker = shop.worker()
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}})
    shop.tick()
    begins(shop)

    worker.send(signal.SIGTERM)
    worker.said("Warm shutdown")
    shop.gate().touch()

    assert worker.ended() == 0
    assert shop.installation.row(id)["state"] == "success"


@pytest.mark.parametrize("app", ["followed", "shop"])
def test_a_daemon_killed_between_sending_and_marking_runs_nothing_twice(
    shop: Shop, app: str
) -> None:
    worker = shop.worker(app)
    id = shop.due("close_day")
    stuck = Proxy(shop.installation.broker.port, most_pushes=0)
    script = str(ROOT / "scheduler_server.py")
    settings = {**shop.settings, "SCHED_BROKER_URL": stuck.url}
    daemon = shop.installation.processes.start("daemon", python(script), settings)
    assert stuck.is_cut.wait(60)
    shop.installation.awaits(id, lambda row: row["send_started_at"] is not None)
    daemon.kill()
    stuck.release()

    update_operation(shop.installation.engine, id, not_before=database_now(-1.0))
    if app == "followed" and shop.said():
        shop.installation.becomes(id, "success")
    shop.tick()
    row = shop.installation.row(id)

    assert shop.said() in ([], RAN_ONCE)
    assert row["state"] in {"success", "failed"}
    assert row["state"] == "success" or row["reason"] == "send uncertain"
    assert row["sendings"] == 0
    assert worker.is_alive
    stuck.close()


def test_a_broker_that_is_restarted_keeps_the_message_and_it_runs_once(shop: Shop) -> None:
    worker = shop.worker()
    blocks = shop.due("close_day", name="blocks", step={"kwargs": {"tills": str(shop.gate())}})
    shop.tick()
    begins(shop)
    shop.installation.broker.stop()
    waits = shop.due("count_stock", name="waits")
    shop.tick()
    assert shop.installation.row(waits)["state"] == "pending"
    assert shop.installation.row(waits)["send_started_at"] is None

    shop.installation.broker.start()
    shop.installation.make_sendable(waits)
    shop.tick()
    shop.gate().touch()

    assert shop.installation.all_end([blocks, waits]) == ["success"] * 2
    expected = [*RAN_ONCE, "count_stock begins", "count_stock ends"]
    assert sorted(shop.said()) == sorted(expected)
    assert worker.is_alive
