"""Worker, daemon and broker stop around a followed task: it runs once, or the record says why."""

import signal

import pytest

from models.sql import database_now
from tests.acceptance.processes import ROOT, python
from tests.acceptance.proxy import Proxy
from tests.acceptance.shop import RAN_ONCE, Shop, begins
from tests.factories import update_operation


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
