"""A process of a worker is killed, or ended because its step ignores all: what then runs again."""

import os
import signal
from typing import Any
from uuid import UUID

import psutil
import pytest
import sqlalchemy as sa

from models.fingerprint import operation_id
from models.sql import database_now
from models.tables import action_cursor, backfills, notices
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, kill, until
from tests.factories import locks_waited_for
from tests.receiver import receiver
from tests.ticks import HOUR, MINUTE
from tests.transactions import execute, fetched

FIRST_STEP = [(1, "trace_one", "start"), (1, "trace_one", "end")]
SHORT = {"SCHED_WORKER_SOFT_LIMIT_S": "0.5", "SCHED_WORKER_HARD_LIMIT_S": "1.5"}


def running_operation(installation: Installation, step: str) -> UUID:
    """Send an operation of two steps, of which the second is held."""
    id = installation.held("trace_one", step)
    installation.send()
    return id


def test_the_step_alone_whose_process_was_killed_runs_again(installation: Installation) -> None:
    id = running_operation(installation, "trace_two")
    installation.daemon()
    installation.worker()

    kill(installation.step_starts(id, 2))
    installation.step_starts(id, 3)
    installation.go.touch()
    row = installation.becomes(id, "success")

    assert installation.trace.story(id) == [
        *FIRST_STEP,
        (1, "trace_two", "start"),
        (2, "trace_two", "start"),
        (2, "trace_two", "end"),
    ]
    assert (row["attempt"], row["losses"], row["failures"]) == (2, 1, 0)
    assert [state for _, state, _ in installation.attempts(id)] == ["lost", "success"]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT], ids=["hangup", "quit"])
def test_a_signal_from_outside_counts_as_lost_as_well(
    installation: Installation, number: signal.Signals
) -> None:
    id = running_operation(installation, "trace_two")
    installation.worker()

    os.kill(installation.step_starts(id, 2), number)
    row = installation.awaits(id, lambda row: row["attempt"] == 2)

    assert (row["losses"], row["failures"]) == (1, 0)
    assert installation.attempts(id)[0][1:] == ("lost", "lost: a signal ended its process")


def test_a_lost_step_that_must_not_begin_twice_fails_its_operation_by_name(
    installation: Installation,
) -> None:
    id = running_operation(installation, "trace_once")
    installation.daemon()
    installation.worker()

    kill(installation.step_starts(id, 2))
    row = installation.becomes(id, "failed")

    assert row["reason"] == "lost"
    assert row["error"].endswith("; step trace_once was running")
    assert installation.trace.story(id) == [*FIRST_STEP, (1, "trace_once", "start")]


def test_a_child_killed_while_it_asks_whether_to_stop_harms_no_other(
    installation: Installation,
) -> None:
    victims = [installation.held(name=f"asking {n}", asks_always=True) for n in range(3)]
    beside = running_operation(installation, "trace_two")
    installation.worker(concurrency=4)
    installation.step_starts(beside, 2)
    pids = [installation.step_starts(id) for id in victims]

    for pid in pids:
        kill(pid)
    for _ in range(2):
        at = installation.row(beside)["heartbeat_at"]
        installation.awaits(beside, lambda row, at=at: row["heartbeat_at"] > at)  # type: ignore[misc]
    installation.go.touch()

    assert installation.becomes(beside, "success")["attempt"] == 1


def blocked(installation: Installation, policy: dict[str, Any]) -> tuple[UUID, UUID, Process, int]:
    """Return a run that blocks, the next one of its action, their worker and the step's pid."""
    steps = {"trace_one": {"until": str(installation.go), "ignores_interrupts": True}}
    action = installation.action(operations=steps, policy={"overlap": "queue", **policy})
    id = installation.operation(action, 1)
    installation.send()
    worker = installation.worker(settings=SHORT)
    pid = installation.step_starts(id)
    after = installation.operation(action)
    installation.send()
    return id, after, worker, pid


def goes_on(installation: Installation, after: UUID, worker: Process, pid: int) -> None:
    # The process that was ended could not send what waited for it: the next tick does.
    installation.tick()
    installation.step_starts(after)

    assert worker.is_alive
    assert pid not in worker.children()


def test_a_step_that_ignores_its_time_limit_is_ended_and_the_worker_goes_on(
    installation: Installation,
) -> None:
    id, after, worker, pid = blocked(installation, {"time_limit": "PT1S"})

    row = installation.becomes(id, "failed")

    assert (row["reason"], row["attempt"], row["failures"]) == ("time limit", 1, 1)
    assert installation.attempts(id) == [(1, "failed", "time limit")]
    goes_on(installation, after, worker, pid)


def test_a_step_that_ignores_everything_is_ended_and_blocks_nobody(
    installation: Installation,
) -> None:
    id, after, worker, pid = blocked(installation, {"time_limit": "PT1H"})

    installation.cli("run", "cancel", str(id), "--wait", "--timeout", "30")

    ((number, state, reason),) = installation.attempts(id)
    assert (number, state) == (1, "cancelled")
    assert str(reason).startswith("cancelled by ")
    goes_on(installation, after, worker, pid)


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_worker_that_is_killed_right_after_an_end_loses_no_dependant(
    installation: Installation,
) -> None:
    """On SQLite nothing can hold it there."""
    id = installation.held(name="first")
    after = [
        installation.action(name, when={"after": {"action": before}})
        for name, before in (("second", "first"), ("third", "second"))
    ]
    uids = [one.uid for one in after]
    installation.worker(is_awaited=True)
    installation.send()
    pid = installation.step_starts(id)
    with installation.engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE action_cursor"))
        installation.go.touch()
        installation.becomes(id, "success")
        kill(pid)
    before = installation.rows(*uids)

    installation.daemon()
    until(lambda: installation.count_of("success") == 3, "the chain has run")

    assert before == []
    assert [row["action_uid"] for row in installation.rows(*uids)] == uids


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_worker_that_is_killed_while_it_records_leaves_all_to_the_next_one(
    installation: Installation,
) -> None:
    last = installation.now().replace(second=0, microsecond=0) - HOUR
    first = last - 999 * MINUTE
    # Nothing of it is due by the clock while the test goes on.
    policy = {"overlap": "allow", "ends_at": (last + MINUTE).isoformat()}
    action = installation.action(when={"cron_rule": "* * * * *"}, policy=policy)
    ends = ("--from", first.isoformat(), "--to", last.isoformat())
    installation.cli("backfill", "traced", *ends)
    until(lambda: bool(installation.kept_messages("minutebook.default")), "its message is sent")
    with installation.engine.begin() as connection:
        # However long a worker takes to come.
        connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        own = sa.select(action_cursor).where(action_cursor.c.action_uid == action.uid)
        connection.execute(own.with_for_update())
        worker = installation.worker("default")
        until(lambda: locks_waited_for(installation.engine) > 0, "it stands in its transaction")
        for pid in worker.children():
            psutil.Process(pid).kill()
        worker.kill()
    state = sa.select(backfills.c.state)
    assert fetched(installation.engine, state).scalar_one() == "active"
    assert installation.rows(action.uid) == []

    installation.worker("default", is_awaited=True)
    execute(installation.engine, sa.update(backfills).values(not_before=database_now(-1.0)))
    installation.tick()
    until(lambda: fetched(installation.engine, state).scalar_one() == "done", "it is done")

    assert {row["id"] for row in installation.rows(action.uid)} == {
        operation_id(action.uid, first + n * MINUTE) for n in range(1_000)
    }


def test_a_worker_killed_in_the_middle_of_a_delivery_delivers_it_again_as_the_same(
    installation: Installation,
) -> None:
    tells = {"SCHED_HOOK_ALLOW_PRIVATE": "true", "SCHED_HOOK_TIMEOUT_S": "60"}
    owed = sa.select(notices.c.state, notices.c.tries)
    with receiver() as web:
        web.trickle_s = 60
        hooks = {"on_success": [{"webhook": web.url}]}
        installation.operation(installation.action(hooks=hooks))
        installation.send()
        worker = installation.worker(settings=tells)
        until(lambda: len(web.got) == 1, "the webhook is called")

        worker.kill()
        until(lambda: installation.processes.left() == [], "its child ends with it")
        web.trickle_s = 0
        installation.worker(settings=tells)
        # As if the time of the try had gone by.
        execute(installation.engine, sa.update(notices).values(not_before=database_now(-1.0)))
        installation.tick()
        until(lambda: fetched(installation.engine, owed).all() == [("done", 2)], "it is told")

        first, second = (got.headers["Idempotency-Key"] for got in web.got)
        assert first == second
