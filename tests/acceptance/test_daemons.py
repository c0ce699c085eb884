"""Daemons that are killed, frozen, or work side by side: each occurrence is sent and run once."""

import signal
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from models.store import ticks
from models.tables import operations
from tests.acceptance.installation import TICK_S, Installation
from tests.acceptance.processes import until
from tests.acceptance.proxy import Proxy
from tests.acceptance.standstill import SLOW, freeze_in_a_transaction
from tests.factories import make_many, set_back
from tests.ticks import SECOND
from tests.transactions import act, execute

# What a worker logs of a second message of an operation.
PASSED_OVER = "not started, taken"
FROZEN_S = 2
# Holds the transaction of whoever records an operation of the action "frozen", as long as the test
# holds the advisory lock; its idle time-out is shortened, from the 30 s of every connection.
HOLD = f"""
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.triggerer LIKE '%frozen%' THEN
    PERFORM set_config('idle_in_transaction_session_timeout', '{FROZEN_S}s', true);
    PERFORM pg_advisory_xact_lock_shared(42);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER hold BEFORE INSERT ON operations FOR EACH ROW EXECUTE FUNCTION hold();
"""


@pytest.fixture
def stuck(installation: Installation) -> Iterator[Proxy]:
    """A way to the broker on which the first message stands still."""
    proxy = Proxy(installation.broker.port)
    yield proxy
    proxy.close()


def record_while_stuck(installation: Installation, stuck: Proxy, count: int) -> list[sa.RowMapping]:
    """Let a daemon record `count` occurrences whose messages stand still on their way."""
    for number in range(count):
        installation.due_action(f"due {number}")
    installation.daemon({"SCHED_BROKER_URL": stuck.url})
    until(lambda: len(installation.rows()) == count, "all are recorded")
    return installation.rows()


def test_a_daemon_killed_between_recording_and_sending_loses_nothing(
    installation: Installation, stuck: Proxy
) -> None:
    rows = record_while_stuck(installation, stuck, 10)
    assert {row["state"] for row in rows} == {"pending"}

    installation.processes.started[-1].kill()
    stuck.close()
    ids = [row["id"] for row in rows]
    installation.make_sendable(*ids)
    installation.tick()
    installation.tick()
    installation.worker()

    assert installation.all_end(ids) == ["success"] * 10
    assert len(installation.rows()) == 10
    assert sorted(line.operation for line in installation.trace.starts()) == sorted(ids)


def test_a_daemon_killed_between_sending_and_marking_sends_twice_and_runs_once(
    installation: Installation, stuck: Proxy
) -> None:
    rows = record_while_stuck(installation, stuck, 10)
    ids = [row["id"] for row in rows]
    with installation.engine.begin() as connection:
        # On SQLite the transaction itself is the lock.
        connection.execute(sa.select(operations.c.id).with_for_update())
        stuck.release()
        until(lambda: len(installation.kept_messages()) == 10, "all are in the broker")
        installation.processes.started[-1].kill()
    assert {row["state"] for row in installation.rows()} == {"pending"}

    installation.make_sendable(*ids)
    installation.tick()
    assert len(installation.kept_messages()) == 20
    worker = installation.worker(concurrency=2)

    assert installation.all_end(ids) == ["success"] * 10
    worker.said(PASSED_OVER, times=10)
    assert sorted(line.operation for line in installation.trace.starts()) == sorted(ids)


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_daemon_frozen_in_a_transaction_holds_up_nobody_and_loses_its_locks(
    installation: Installation,
) -> None:
    execute(installation.engine, sa.text(HOLD))
    # Without a transaction: the server would end one that idles while a daemon starts slowly.
    by_itself = installation.engine.execution_options(isolation_level="AUTOCOMMIT")
    with by_itself.connect() as holder:
        holder.execute(sa.text("SELECT pg_advisory_lock(42)"))
        stuck = [installation.due_action(f"frozen {number}") for number in range(3)]
        frozen = installation.daemon()
        waits = sa.text("SELECT count(*) FROM pg_locks WHERE locktype='advisory' AND NOT granted")
        until(lambda: holder.execute(waits).scalar_one() == 1, "the daemon is in its transaction")
        frozen.freeze()
        holder.execute(sa.text("SELECT pg_advisory_unlock(42)"))

    other = installation.due_action("other")
    installation.worker()
    installation.daemon()
    row = installation.awaited_row(other)
    installation.becomes(row["id"], "success")
    for action in stuck:
        row = installation.awaited_row(action)
        installation.becomes(row["id"], "success")
    frozen.thaw()
    frozen.said("tick ")

    assert len(installation.rows()) == 4
    assert len(installation.trace.starts()) == 4
    assert frozen.is_alive


@pytest.mark.parametrize("store", ["sqlite"])
@pytest.mark.parametrize("then", ["goes_on", "is_killed"])
def test_a_daemon_frozen_in_a_transaction_on_sqlite_holds_up_all_who_say_so_until_it_ends(
    installation: Installation, then: str
) -> None:
    """There is one lock for all, and nobody but its holder can give it back."""
    running = installation.held()
    worker = installation.worker(concurrency=2)
    frozen = installation.daemon()
    installation.step_starts(running)
    execute(installation.engine, sa.text(SLOW))
    due = installation.due_action("frozen")
    freeze_in_a_transaction(installation, frozen)

    other = installation.daemon({"SCHED_DATABASE_URL": str(installation.engine.url)})
    if then == "goes_on":
        worker.said("heartbeat of")
        other.said("database unavailable, trying again: database is locked")
    assert installation.rows(due.uid) == []
    frozen.thaw() if then == "goes_on" else frozen.kill()
    row = installation.awaited_row(due)
    installation.becomes(row["id"], "success")
    installation.go.touch()
    ended = installation.becomes(running, "success")

    assert (ended["attempt"], ended["losses"]) == (1, 0)
    assert len(installation.trace.starts()) == len(installation.rows()) == 2
    assert (frozen.is_alive, other.is_alive) == (then == "goes_on", True)


def test_two_daemons_at_once_send_each_of_1000_that_are_due_at_each_tick_once(
    installation: Installation,
) -> None:
    first = installation.now().replace(microsecond=0) + 11 * SECOND
    when = [{"due_date": (first + n * TICK_S * SECOND).isoformat()} for n in range(3)]
    policy = {"overlap": "allow", "catch_up": "all", "look_back": "PT5M"}
    uids = make_many(installation.engine, 1_000, when=when, policy=policy)
    set_back(installation.engine, uids, first - SECOND)
    small = {"SCHED_SCHEDULER_BATCH_SIZE": "100"}
    daemons = [installation.daemon(small), installation.daemon(small)]

    until(lambda: installation.count_of("queued") >= 3_000, "3,000 are sent", 180)
    ticked = len(installation.ticks())
    until(lambda: len(installation.ticks()) >= ticked + 2, "another tick of each")

    rows = installation.rows()
    assert len(rows) == len({row["id"] for row in rows}) == 3_000
    assert sorted(installation.broker.messages("quick")) == sorted(
        (str(row["id"]), 1) for row in rows
    )
    assert {(row["state"], row["sendings"]) for row in rows} == {("queued", 1)}
    # Both had a share in it.
    recorded = {tick["daemon"]: tick["report"].get("recorded", 0) for tick in installation.ticks()}
    assert len(recorded) == 2
    for daemon in daemons:
        daemon.send(signal.SIGTERM)
    assert [daemon.ended() for daemon in daemons] == [0, 0]


def test_a_daemon_that_is_told_so_runs_every_active_action_once_first(
    installation: Installation,
) -> None:
    made = [installation.action(name) for name in ("one", "two")]
    paused = installation.action("paused", active=False)
    installation.worker()

    daemon = installation.processes.start("daemon", installation.command("daemon", "--run-now"))

    ids = [installation.awaited_row(one)["id"] for one in made]
    assert installation.all_end(ids) == ["success", "success"]
    assert installation.rows(paused.uid) == []
    assert {row["cause"] for row in installation.rows() if row["id"] in ids} == {"manual"}
    daemon.said("tick ")
    daemon.send(signal.SIGTERM)
    assert daemon.ended() == 0
    # One that is stopped in order leaves word.
    last = act(installation.engine, ticks.last)
    assert last is not None
    assert last["stopped_at"] is not None
