"""A machine whose clock is wrong: measured, shown, and of no consequence."""

import threading
import time
from datetime import datetime, timedelta, tzinfo

import pytest
import sqlalchemy as sa

import minutebook
from models.store import ticks, workers
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import put_back
from models.tables import operations
from processes.worker import Presence
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.sections.processes import WorkerSettings
from scheduler.loop import Daemon
from tasks.lease import stopping
from tests.factories import STEPS, make_action, row_of
from tests.integration.tasks.crew import Work
from tests.ticks import MINUTE, SECOND
from tests.transactions import act, clock_of, fetched

LEASE = 3 * SECOND


def shift_clock(monkeypatch: pytest.MonkeyPatch, by_s: float) -> None:
    """Let the wall clock of this process be off: our one reader of it, and the libraries'."""

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(seconds=by_s)  # noqa: TID251

    right = time.time  # noqa: TID251
    monkeypatch.setattr("runtime.clock.datetime", Shifted)
    monkeypatch.setattr(time, "time", lambda: right() + by_s)


@pytest.mark.parametrize("shift_s", [-86_400, 86_400])
def test_a_worker_whose_clock_is_a_day_off_keeps_its_lease_and_ends_well(
    work: Work, monkeypatch: pytest.MonkeyPatch, shift_s: float
) -> None:
    shift_clock(monkeypatch, shift_s)
    kept = WorkerSettings(heartbeat_s=1, lease_s=LEASE.total_seconds())
    work.settings = work.settings.model_copy(update={"worker": kept})
    presence = threading.Thread(target=Presence(work.settings, "quick@here", "quick", 1)._keep)
    presence.start()
    skews: list[float] = []

    def outlasts(context: minutebook.StepContext) -> None:
        first = row_of(work.engine, context.operation_id)["heartbeat_at"]
        assert wait_for(
            lambda: row_of(work.engine, context.operation_id)["heartbeat_at"] > first + LEASE / 2,
            20,
        )
        assert act(work.engine, put_back.take_back_lost, LEASE, 10, NO_ALERTS) == []
        skews.extend(one["skew_s"] for one in act(work.engine, workers.live_workers, LEASE))

    row = work.ran(outlasts)
    stopping.value = True
    presence.join()

    assert row["state"] == "success"
    assert row["finished_at"] - row["recorded_at"] < 5 * MINUTE
    assert skews == [pytest.approx(shift_s, abs=2)]


@pytest.mark.parametrize("shift_s", [0, 7_200])
def test_a_daemon_whose_clock_is_off_decides_by_the_databases(
    engine: sa.Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch, shift_s: float
) -> None:
    minute = (clock_of(engine).minute + 30) % 60
    make_action(engine, when={"cron_rule": f"{minute} * * * *", "timezone": "UTC"})
    shift_clock(monkeypatch, shift_s)
    daemon = Daemon(engine, settings, STEPS)
    daemon._read_clock()

    daemon.tick_once()

    last = act(engine, ticks.last)
    assert last is not None
    # A clock that is right is not reported.
    assert last["report"].get("clock_skew_s", 0) == pytest.approx(shift_s, abs=2)
    assert ("clock_skew_s" in last["report"]) is (shift_s != 0)
    assert fetched(engine, sa.select(operations)).all() == []
