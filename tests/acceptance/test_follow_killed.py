"""Worker, daemon and broker stop around a followed task: it runs once, or the record says why."""

import pytest

from models.sql import database_now
from tests.acceptance.processes import ROOT, python
from tests.acceptance.proxy import Proxy
from tests.acceptance.shop import RAN_ONCE, Shop
from tests.factories import update_operation


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
