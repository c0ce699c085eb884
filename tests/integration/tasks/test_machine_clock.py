"""A machine whose clock is wrong: measured, shown, and of no consequence."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import BaseModel

from minutebook.steps import StepSpec
from models.sql import read_clock
from models.store import ticks, workers
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import put_back
from models.tables import operations
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.database import reading
from scheduler.changes.change import create_all
from scheduler.loop import Daemon
from tests.factories import STEPS, author, make_action, make_document, make_operation, row_of

ROOT = Path(__file__).parents[3]
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
LEASE = timedelta(seconds=3)
# A process whose wall clock is off: our one reader of it, and those of the libraries.
SHIFTED = """
import sys, time
from datetime import datetime, timedelta
import runtime.clock

shift = float(sys.argv[1])
class Shifted(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + timedelta(seconds=shift)
runtime.clock.datetime = Shifted
right = time.time
time.time = lambda: right() + shift
"""
WORKER = """
import threading
from uuid import UUID
import minutebook
from processes.worker import Presence
from runtime.config import load_settings
from runtime.database import make_engine
from broker.app import configure
from tasks.execute import run_attempt
from tasks.registry import Registry

settings = load_settings()
configure(settings)
engine = make_engine(settings)

@minutebook.step("maintenance_like")
def waits(context):
    print("running", flush=True)
    sys.stdin.readline()

presence = Presence(settings, "quick@shifted:1", "quick", 1)
presence.start()
print(run_attempt(engine, settings, Registry(), (UUID(sys.argv[2]), 1), "shifted"), flush=True)
"""
DAEMON = """
from runtime.config import load_settings
from runtime.database import make_engine
from scheduler.loop import Daemon
from tasks.built_in import built_in_steps
from broker.app import configure

settings = load_settings()
configure(settings)
daemon = Daemon(make_engine(settings), settings, built_in_steps())
daemon.prepare()
daemon._read_clock()
daemon.tick_once()
"""


@contextmanager
def shifted(settings: Settings, script: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a script in a process whose clock is off by the first argument, in seconds."""
    environ = {
        **{key: value for key, value in os.environ.items() if not key.startswith("SCHED_")},
        "SCHED_HOME": str(settings.home),
        "SCHED_BROKER_URL": settings.broker_url.get_secret_value(),
        "SCHED_WORKER_HEARTBEAT_S": "1",
        "SCHED_WORKER_LEASE_S": "3",
    }
    if settings.database_url.get_secret_value():
        environ["SCHED_DATABASE_URL"] = settings.database_url.get_secret_value()
    child = subprocess.Popen(
        [sys.executable, "-c", SHIFTED + script, *arguments],
        cwd=ROOT, env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


class NoParameters(BaseModel):
    """Those of a step that has none."""


@pytest.mark.parametrize("shift", ["-86400", "86400"])
def test_a_worker_whose_clock_is_a_day_off_keeps_its_lease_and_ends_well(
    engine: sa.Engine, settings: Settings, shift: str
) -> None:
    spec = StepSpec("maintenance_like", NoParameters)
    document = make_document(operations={"maintenance_like": True})
    (action,) = create_all(engine, [document], author({"maintenance_like": spec, **STEPS}))
    id = make_operation(engine, action, NOON)

    with shifted(settings, WORKER, shift, str(id)) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "running\n"
        first = row_of(engine, id)["heartbeat_at"]
        assert wait_for(lambda: row_of(engine, id)["heartbeat_at"] > first + LEASE / 2, 20)
        with engine.begin() as connection:
            taken = put_back.take_back_lost(connection, LEASE, 10, NO_ALERTS)
            (worker,) = workers.live_workers(connection, LEASE)
        child.stdin.write("go on\n")
        child.stdin.flush()
        ended = child.stdout.readline()

    row = row_of(engine, id)
    assert (taken, ended, row["state"]) == ([], "success\n", "success")
    assert row["finished_at"] - row["recorded_at"] < timedelta(minutes=5)
    assert abs(worker["skew_s"] - float(shift)) < 2


def test_a_daemon_whose_clock_is_off_decides_by_the_databases(
    engine: sa.Engine, settings: Settings
) -> None:
    with reading(engine) as connection:
        minute = (read_clock(connection).minute + 30) % 60
    make_action(engine, when={"cron_rule": f"{minute} * * * *", "timezone": "UTC"})

    with shifted(settings, DAEMON, "7200") as child:
        assert child.wait(60) == 0

    with reading(engine) as connection:
        last = ticks.last(connection)
        recorded = connection.execute(sa.select(sa.func.count()).select_from(operations)).scalar()
    assert last is not None
    assert abs(last["report"]["clock_skew_s"] - 7200) < 2
    assert recorded == 0


def test_a_daemon_whose_clock_is_right_reports_none(engine: sa.Engine, settings: Settings) -> None:
    daemon = Daemon(engine, settings, steps=STEPS)
    daemon._read_clock()

    report = daemon.tick_once()

    assert "clock_skew_s" not in json.dumps(report.figures())
