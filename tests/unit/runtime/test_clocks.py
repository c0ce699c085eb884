"""Clocks that are off, waits that a signal ends, and what is tried again."""

import subprocess
import sys
from datetime import UTC, datetime
from threading import Thread
from uuid import uuid4

import pytest
import sqlalchemy as sa

from models.store.clocks import skew_s
from runtime import db_retry
from runtime.clock import monotonic
from runtime.database import reason_of
from runtime.db_retry import MOST_STARTS, persist, start
from runtime.skew import SkewWatch
from runtime.stopping import Stop
from tests.ticks import SECOND

NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "answered", "expected"),
    [
        pytest.param(NOON, NOON, 0.0, id="right"),
        pytest.param(NOON - 14 * SECOND, NOON, 0.0, id="held back on the way there"),
        pytest.param(NOON, NOON + 14 * SECOND, 0.0, id="held back on the way back"),
        pytest.param(NOON + 3 * SECOND, NOON + 5 * SECOND, 3.0, id="ahead"),
        pytest.param(NOON - 62 * SECOND, NOON - 60 * SECOND, -60.0, id="behind"),
    ],
)
def test_the_database_read_its_clock_at_any_moment_of_the_round_trip(
    asked: datetime, answered: datetime, expected: float
) -> None:
    assert skew_s(asked, NOON, answered) == expected


def test_a_clock_that_is_off_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "minutebook.clock")
    watch = SkewWatch()

    offs = []
    for skew in (1.9, 2.1, 30.0, -30.0, 0.5):
        watch.note(skew)
        offs.append(watch.is_off)

    assert offs == [False, True, True, True, False]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "+2.1 s off" in caplog.text


def test_a_wall_clock_that_was_set_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    watch = SkewWatch()

    for wall_s, other_s in ((1000.0, 10.0), (1010.5, 20.0), (4620.0, 30.0), (4630.0, 40.0)):
        watch.note_wall(wall_s, other_s)

    assert [record.message for record in caplog.records] == [
        "this machine's clock was set by +3599.5 s"
    ]


# A handler that waits for a lock of its own thread hangs within a tenth of these waits.
WAITS = 20_000
SIGNALLED = f"""
import signal
from runtime.stopping import Stop

stops = [Stop()]
signal.signal(signal.SIGALRM, lambda *_: stops[-1].set())
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.00013)
for number in range({WAITS}):
    stops[:] = [Stop()]
    while not stops[-1].wait(0.0001):
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_no_signal_hangs_a_thread_that_waits() -> None:
    """A signal may come at any moment: also while the thread that it interrupts begins to wait."""
    done = subprocess.run([sys.executable, "-c", SIGNALLED], check=False, timeout=60)

    assert done.returncode == 0


def test_a_wait_ends_when_it_is_set_or_after_its_time() -> None:
    stop = Stop()

    assert (stop.is_set(), stop.wait(0.01), stop.wait(-1)) == (False, False, False)
    began = monotonic()
    other = Thread(target=stop.set)
    other.start()
    assert stop.wait(30)
    other.join()
    assert (stop.is_set(), stop.wait()) == (True, True)
    assert monotonic() - began < 20


NO_CONNECTION = sa.exc.TimeoutError("QueuePool limit of size 5 reached")
LOCKED = sa.exc.OperationalError("UPDATE x", {}, Exception("database is locked\nat line 1"))
RIVAL = sa.exc.IntegrityError("UPDATE", {}, Exception("operations_one_running"))


@pytest.mark.parametrize(
    ("error", "said"),
    [(NO_CONNECTION, "QueuePool limit of size 5 reached"), (LOCKED, "database is locked")],
    ids=["no_free_connection", "locked"],
)
def test_what_the_database_does_not_take_now_is_written_again(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: sa.exc.SQLAlchemyError,
    said: str,
) -> None:
    monkeypatch.setattr(db_retry, "RETRY_S", 0.0)
    outcomes: list[str | Exception] = [error, "written"]

    def act(_connection: sa.Connection) -> str:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert persist(sa.create_engine("sqlite://"), act) == "written"
    assert caplog.messages == [f"database unavailable, trying again: {said}"]
    assert reason_of(ValueError()) == "ValueError"


@pytest.mark.parametrize(
    ("times", "expected", "left"), [(MOST_STARTS - 1, "claimed", 0), (MOST_STARTS + 1, None, 1)]
)
def test_a_claim_that_a_rival_broke_is_made_again_but_not_for_ever(
    times: int, expected: str | None, left: int
) -> None:
    rivals: list[Exception] = [RIVAL] * times

    def claimed() -> str:
        if rivals:
            raise rivals.pop()
        return "claimed"

    assert start(uuid4(), claimed, None) == expected
    assert len(rivals) == left
