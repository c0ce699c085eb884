"""The reader of jobs: how long it looks, and whom it serves first."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from web import dispatcher as module
from web.dispatcher import JobDispatcher, pair
from web.problems import Stopping

AWAY = sa.exc.OperationalError("SELECT 1", {}, Exception("the database is away"))
PATIENT: Any = SimpleNamespace(settings=SimpleNamespace(work=SimpleNamespace(pop_timeout_s=60)))


class Looking(JobDispatcher):
    """A reader whose looks have these outcomes; it stops with the last."""

    def __init__(self, outcomes: list[bool | Exception]) -> None:
        super().__init__(PATIENT)
        self.outcomes = outcomes
        self.count = 0

    async def _look(self) -> bool:
        outcome = self.outcomes[self.count]
        self.count += 1
        if self.count == len(self.outcomes):
            self.stop()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def wait_for_a_job(dispatcher: JobDispatcher) -> None:
    async def gone() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stopping):
        await dispatcher.next(None, "quick", "worker", gone)


async def looked(outcomes: list[bool | Exception]) -> int:
    """Look with these outcomes while a worker waits; return how often was looked."""
    dispatcher = Looking(outcomes)
    await asyncio.wait_for(asyncio.gather(dispatcher.run(), wait_for_a_job(dispatcher)), 10)
    return dispatcher.count


def test_it_looks_again_at_once_while_there_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    # Only a look that finds nothing is followed by this pause.
    monkeypatch.setattr(module, "INTERVAL_S", 3600.0)

    assert asyncio.run(looked([True, True, True])) == 3


@pytest.mark.parametrize("error", [AWAY, ValueError("a fault")], ids=["away", "fault"])
def test_it_goes_on_after_an_error(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AWAY_S", 0.0)

    assert asyncio.run(looked([error, False, error, False])) == 4


def test_it_does_not_look_while_no_worker_waits() -> None:
    async def count_looks() -> tuple[int, int]:
        dispatcher = Looking([True])
        running = asyncio.ensure_future(dispatcher.run())
        for _ in range(10):
            await asyncio.sleep(0)
        before = dispatcher.count
        await asyncio.wait_for(asyncio.gather(running, wait_for_a_job(dispatcher)), 10)
        return before, dispatcher.count

    assert asyncio.run(count_looks()) == (0, 1)


BUSY, OTHER = 1, 2
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Worker:
    name: str
    app_id: int | None = None
    queue: str = "quick"


@dataclass(frozen=True)
class Job:
    name: str
    recorded_at: datetime


def jobs(busy: str, other: str) -> dict[tuple[int, str], Any]:
    """Return jobs of both apps, recorded in the order of their letters."""
    return {
        (app, "quick"): [Job(one, NOON + timedelta(seconds=ord(one))) for one in names]
        for app, names in ((BUSY, busy), (OTHER, other))
    }


def paired(workers: list[Any], waiting: dict[tuple[int, str], Any], most: int = 10) -> list[str]:
    found: Any = pair(workers, waiting, most)
    return [f"{job.name} {worker.name}" for job, worker in found]


def test_the_oldest_job_goes_to_the_first_worker() -> None:
    three = [Worker("1"), Worker("2"), Worker("3")]

    assert paired(three, jobs(busy="ac", other="bd")) == ["a 1", "b 2", "c 3"]


def test_a_worker_gets_only_what_it_asks_for() -> None:
    waiting = [Worker("heavy", queue="heavy"), Worker("own", OTHER), Worker("any")]

    assert paired(waiting, jobs(busy="a", other="b")) == ["b own", "a any"]


def test_no_more_are_paired_than_are_taken_at_once() -> None:
    assert paired([Worker("1"), Worker("2"), Worker("3")], jobs(busy="abc", other=""), 2) == [
        "a 1",
        "b 2",
    ]
