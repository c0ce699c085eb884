"""The reader of jobs looks as long as a worker waits, and nothing ends it but its stop."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from web import dispatcher as module
from web.dispatcher import JobDispatcher
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
