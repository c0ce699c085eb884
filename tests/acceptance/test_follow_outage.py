"""Server or database are away while followed tasks begin, run and end: no slot waits for them."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from tests.acceptance.processes import Process, python, until
from tests.acceptance.shop import RAN_ONCE, Shop
from tests.acceptance.standstill import standing_still

# No heartbeat comes between, and no lease runs out.
CALM = {"SCHED_WORKER_HEARTBEAT_S": "100", "SCHED_WORKER_LEASE_S": "300"}
SLOTS = 2
BACK = "its message goes back to its queue"


@contextmanager
def away(shop: Shop, request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the database answer nobody during the block."""
    is_server = shop.installation.store == "postgresql"
    server = request.getfixturevalue("postgresql") if is_server else None
    with standing_still(shop.installation, server):
        yield


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


def call(shop: Shop) -> None:
    """Let the application send a task of its own."""
    code = "import shop, tasks; tasks.write_letter.apply_async(['Lyon'], queue='shop')"
    done = shop.installation.processes.run(python("-c", code), shop.settings, shop.folder)
    assert done.returncode == 0, done.stderr


def test_the_application_s_own_tasks_run_while_ends_wait_for_the_database(
    shop: Shop, request: pytest.FixtureRequest
) -> None:
    worker, ids = all_slots_busy(shop)

    with away(shop, request):
        shop.gate().touch()
        call(shop)
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
