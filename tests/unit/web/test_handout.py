"""The reader of jobs looks as long as a worker waits, and nothing ends it but its stop."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from web import handout as module
from web.handout import Handout
from web.problems import Stopping

AWAY = sa.exc.OperationalError("SELECT 1", {}, Exception("the database is away"))
PATIENT: Any = SimpleNamespace(settings=SimpleNamespace(work=SimpleNamespace(pop_timeout_s=60)))


class Looking(Handout):
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


async def wait_for_a_job(handout: Handout) -> None:
    async def gone() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stopping):
        await handout.next(None, "quick", "worker", gone)


async def looked(outcomes: list[bool | Exception]) -> int:
    """Look with these outcomes while a worker waits; return how often was looked."""
    handout = Looking(outcomes)
    await asyncio.wait_for(asyncio.gather(handout.run(), wait_for_a_job(handout)), 10)
    return handout.count


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
        handout = Looking([True])
        running = asyncio.ensure_future(handout.run())
        for _ in range(10):
            await asyncio.sleep(0)
        before = handout.count
        await asyncio.wait_for(asyncio.gather(running, wait_for_a_job(handout)), 10)
        return before, handout.count

    assert asyncio.run(count_looks()) == (0, 1)
