"""The database is away while followed tasks end: no slot of the pool waits for it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from models.sql import database_now
from models.store.operations.put_back import take_back_lost
from tests.acceptance.processes import Process, kill, python, until
from tests.acceptance.shop import RAN_ONCE, Shop
from tests.acceptance.standstill import standing_still
from tests.factories import update_operation
from tests.servers import PostgreSQL

# No heartbeat comes between, and no lease runs out.
CALM = {"SCHED_WORKER_HEARTBEAT_S": "100", "SCHED_WORKER_LEASE_S": "300"}
SLOTS = 2


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


def kept(shop: Shop) -> list[Path]:
    return sorted((shop.installation.home / "kept-ends").glob("*.json"))


def test_the_application_s_own_tasks_run_while_ends_wait_for_the_database(
    shop: Shop, request: pytest.FixtureRequest
) -> None:
    worker, ids = all_slots_busy(shop)

    with away(shop, request):
        shop.gate().touch()
        call(shop)
        until(lambda: "write_letter begins" in shop.said(), lambda: worker.text()[-2000:], 10.0)
        until(lambda: len(kept(shop)) == SLOTS, lambda: str(kept(shop)))
        modes = {path.stat().st_mode & 0o777 for path in kept(shop)}

    assert shop.installation.all_end(ids) == ["success"] * SLOTS
    assert [shop.installation.row(id)["attempt"] for id in ids] == [1] * SLOTS
    assert modes == {0o600}
    until(lambda: not kept(shop), "nothing is kept any more")


def test_an_agent_that_is_killed_loses_no_end_that_it_keeps(
    shop: Shop, request: pytest.FixtureRequest
) -> None:
    worker, ids = all_slots_busy(shop)

    with away(shop, request):
        shop.gate().touch()
        until(lambda: len(kept(shop)) == SLOTS, lambda: worker.text()[-2000:])
        kill(shop.agent(worker).pid)

    assert shop.installation.all_end(ids) == ["success"] * SLOTS
    assert [shop.installation.attempts(id)[-1][1] for id in ids] == ["success"] * SLOTS
    assert sorted(shop.said()) == sorted(RAN_ONCE * SLOTS)
    until(lambda: not kept(shop), "nothing is kept any more")


def test_a_kept_end_is_written_by_the_next_agent_when_worker_and_agent_are_gone(
    shop: Shop, request: pytest.FixtureRequest
) -> None:
    worker, ids = all_slots_busy(shop)
    with away(shop, request):
        shop.gate().touch()
        until(lambda: len(kept(shop)) == SLOTS, lambda: worker.text()[-2000:])
        agent = shop.agent(worker)
        worker.send(signal.SIGKILL)
        kill(agent.pid)

    shop.worker(settings=CALM)

    assert shop.installation.all_end(ids) == ["success"] * SLOTS


def take_back(shop: Shop, ids: list[UUID]) -> None:
    """Take operations back as the sweep does whose leases have run out."""
    engine, lease = shop.installation.engine, timedelta(minutes=5)
    for id in ids:
        update_operation(engine, id, heartbeat_at=database_now(-3600.0))
    with engine.begin() as connection:
        taken = take_back_lost(connection, lease, len(ids), shop.installation.settings.alert)
    assert {id for id, _ in taken} == set(ids)


# On PostgreSQL, the frozen agent's transaction would keep the rows locked.
@pytest.mark.parametrize("store", ["sqlite"])
def test_a_kept_end_of_an_attempt_that_was_given_away_does_not_win(
    shop: Shop, request: pytest.FixtureRequest
) -> None:
    worker, ids = all_slots_busy(shop)
    with away(shop, request):
        shop.gate().touch()
        until(lambda: len(kept(shop)) == SLOTS, lambda: worker.text()[-2000:])
        agent = shop.agent(worker)
        agent.suspend()
    take_back(shop, ids)

    agent.resume()

    worker.said("nothing more is written", times=SLOTS)
    until(lambda: not kept(shop), "nothing is kept any more")
    assert [shop.installation.row(id)["state"] for id in ids] == ["failed"] * SLOTS


@pytest.mark.parametrize("store", ["postgresql"])
def test_ends_arrive_once_when_a_server_that_was_stopped_is_back(
    shop: Shop, postgresql: PostgreSQL
) -> None:
    worker, ids = all_slots_busy(shop)

    postgresql.stop()
    try:
        shop.gate().touch()
        call(shop)
        until(lambda: "write_letter begins" in shop.said(), lambda: worker.text()[-2000:], 10.0)
        until(lambda: len(kept(shop)) == SLOTS, lambda: str(kept(shop)))
    finally:
        postgresql.start()
        shop.installation.engine.dispose()

    assert shop.installation.all_end(ids) == ["success"] * SLOTS
    assert sorted(shop.said()) == sorted([*RAN_ONCE * SLOTS, "write_letter begins"])


def test_a_task_whose_message_comes_meanwhile_waits_in_its_queue_and_runs_once(
    shop: Shop, request: pytest.FixtureRequest
) -> None:
    worker = shop.worker()
    id = shop.due("close_day")
    worker.freeze_tree()
    shop.tick()

    with away(shop, request):
        worker.thaw_tree()
        worker.said("its message goes back to its queue")
        call(shop)
        until(lambda: "write_letter begins" in shop.said(), lambda: worker.text()[-2000:])

    # A claim that the database committed unheard is given back, and sent again by a tick.
    shop.installation.daemon(shop.settings)
    shop.installation.becomes(id, "success")
    assert shop.said().count("close_day begins") == 1
