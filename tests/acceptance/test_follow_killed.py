"""Killed at every point: each occurrence of a followed task runs once, or the record says why."""

import signal

import pytest

from models.sql import database_now
from tests.acceptance.processes import ROOT, kill, python, until
from tests.acceptance.proxy import Proxy
from tests.acceptance.shop import (
    RAN_ONCE,
    Shop,
    asked_of_a_frozen_agent,
    begins,
    killed,
    threads,
)
from tests.factories import update_operation
from tests.slow_commit import held_claims


def test_killed_before_the_claim_it_is_given_back_and_runs_once(shop: Shop) -> None:
    worker, agent, id = asked_of_a_frozen_agent(shop)
    killed(shop, worker)

    agent.resume()
    shop.installation.awaits(id, lambda row: row["attempt"] == 2)
    shop.worker()
    shop.tick()

    shop.installation.becomes(id, "success")
    assert shop.said() == RAN_ONCE
    assert shop.installation.attempts(id)[0][1] == "given back: its task had not begun"


def test_killed_before_the_claim_with_its_agent_the_record_says_that_nobody_started_it(
    shop: Shop,
) -> None:
    worker, agent, id = asked_of_a_frozen_agent(shop)
    killed(shop, worker)
    kill(agent.pid)

    shop.installation.make_sendable(id)
    shop.tick()

    row = shop.installation.row(id)
    assert (row["state"], row["attempt"]) == ("handed_over", 1)
    assert row["reason"] == "no worker that follows it has started it within an hour"
    assert shop.said() == []


@pytest.mark.parametrize("store", ["postgresql"])
def test_if_only_the_agent_is_killed_as_its_claim_is_committed_the_task_runs_once(
    shop: Shop,
) -> None:
    engine = shop.installation.engine
    worker = shop.worker()
    agent = shop.agent(worker)
    with held_claims(engine) as are_committing:
        id = shop.due("close_day")
        shop.tick()
        until(are_committing, "a claim commits")
        # The database commits what it was told to, though nobody hears of it.
        kill(agent.pid)

    shop.installation.becomes(id, "success")
    assert shop.said() == RAN_ONCE
    assert shop.installation.row(id)["attempt"] == 1


def test_killed_in_the_task_it_is_failed_and_does_not_begin_twice(shop: Shop) -> None:
    worker = shop.worker()
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}})
    shop.tick()
    begins(shop)

    killed(shop, worker)

    row = shop.installation.becomes(id, "failed")
    assert row["error"] == "lost: its process is gone; step celery_task was running"
    shop.gate().touch()
    shop.worker()
    shop.tick()
    assert shop.said() == ["close_day begins"]


def test_a_process_of_the_pool_that_is_killed_costs_its_own_task_alone(shop: Shop) -> None:
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
    gates[1].touch()

    assert shop.installation.all_end(ids) == ["failed", "success"]
    assert worker.is_alive


def test_killed_after_the_task_before_its_end_is_written_the_end_is_written(shop: Shop) -> None:
    # No heartbeat comes between.
    calm = {"SCHED_WORKER_HEARTBEAT_S": "100", "SCHED_WORKER_LEASE_S": "300"}
    worker = shop.worker(settings=calm)
    before = threads(shop, worker)
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}})
    shop.tick()
    begins(shop)
    agent = shop.agent(worker)
    agent.suspend()
    shop.gate().touch()
    shop.says(*RAN_ONCE)
    # What it tells the agent then lies in the socket.
    until(lambda: threads(shop, worker) == before, "the thread of its lease is over")

    killed(shop, worker)
    agent.resume()

    row = shop.installation.awaits(id, lambda row: row["state"] in {"success", "failed"})
    assert (row["state"], row["attempt"]) == ("success", 1)


def test_killed_after_the_task_with_its_agent_it_is_lost_and_says_so(shop: Shop) -> None:
    worker = shop.worker()
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}})
    shop.tick()
    begins(shop)
    agent = shop.agent(worker)
    agent.suspend()
    shop.gate().touch()
    shop.says(*RAN_ONCE)

    killed(shop, worker)
    kill(agent.pid)
    shop.installation.daemon()

    row = shop.installation.becomes(id, "failed")
    assert row["reason"] == "lost"
    assert row["error"].endswith("sent no heartbeat; step celery_task was running")
    assert shop.said() == RAN_ONCE


def test_killed_with_its_agent_a_task_is_tried_again_by_its_policy(shop: Shop) -> None:
    worker = shop.worker()
    retry = {"retry": {"max_attempts": 3, "backoff": ["PT1M"]}}
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}}, policy=retry)
    shop.tick()
    begins(shop)
    agent = shop.agent(worker)
    agent.suspend()

    killed(shop, worker)
    kill(agent.pid)
    shop.installation.daemon()

    row = shop.installation.awaits(id, lambda row: row["attempt"] == 2)
    assert (row["state"], row["failures"], row["losses"]) == ("pending", 1, 0)


def test_an_agent_that_is_killed_in_a_task_is_started_again_and_the_task_ends_well(
    shop: Shop,
) -> None:
    worker = shop.worker()
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}})
    shop.tick()
    begins(shop)
    before = shop.agent(worker)

    kill(before.pid)
    worker.said("starting it again")
    shop.gate().touch()

    row = shop.installation.awaits(id, lambda row: row["state"] in {"success", "failed"})
    assert (row["state"], row["attempt"]) == ("success", 1)
    assert shop.said() == RAN_ONCE


def test_a_worker_that_stops_warm_ends_its_tasks_and_takes_its_agent_along(shop: Shop) -> None:
    worker = shop.worker()
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}})
    shop.tick()
    begins(shop)
    agent = shop.agent(worker)

    worker.send(signal.SIGTERM)
    worker.said("Warm shutdown")
    shop.gate().touch()

    assert worker.ended() == 0
    assert shop.installation.row(id)["state"] == "success"
    until(lambda: not agent.is_running(), "the agent is gone")


def test_a_killed_worker_s_agent_ends_with_it(shop: Shop) -> None:
    worker = shop.worker()
    agent = shop.agent(worker)

    killed(shop, worker)

    until(lambda: not agent.is_running() or agent.status() == "zombie", "the agent is gone")


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
    shop.installation.awaits(id, lambda row: row["handing_at"] is not None)
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
    assert shop.installation.row(waits)["handing_at"] is None

    shop.installation.broker.start()
    shop.installation.make_sendable(waits)
    shop.tick()
    shop.gate().touch()

    assert shop.installation.all_end([blocks, waits]) == ["success"] * 2
    expected = [*RAN_ONCE, "count_stock begins", "count_stock ends"]
    assert sorted(shop.said()) == sorted(expected)
    assert worker.is_alive


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "task", ["close_day", "count_stock"], ids=["acknowledged_early", "acknowledged_late"]
)
def test_a_message_goes_back_on_its_queue_while_the_database_is_away(shop: Shop, task: str) -> None:
    shop.is_hasty(0.1)
    id = shop.due(task)
    shop.tick()
    # SQLite's one lock: nobody can write.
    with shop.installation.engine.begin():
        worker = shop.worker(is_seen=False)
        worker.said("its message goes back to its queue")
        assert shop.said() == []

    assert shop.installation.becomes(id, "success")["sendings"] == 1
    assert shop.said() == [f"{task} begins", f"{task} ends"]


def test_a_task_does_not_run_unclaimed_while_its_agent_does_not_answer(shop: Shop) -> None:
    _worker, agent, id = asked_of_a_frozen_agent(shop)
    assert shop.said() == []

    agent.resume()

    shop.installation.becomes(id, "success")
    assert shop.said() == RAN_ONCE
