"""A reader looks as long as somebody waits, and nothing ends it but its stop."""

import asyncio

import pytest
import sqlalchemy as sa

from web import looks as module
from web.looks import Looks

AWAY = sa.exc.OperationalError("SELECT 1", {}, Exception("the database is away"))


async def looked(outcomes: list[bool | Exception], interval_s: float = 0.0) -> int:
    """Look with these outcomes, then stop; return how often was looked."""
    count = 0

    async def look() -> bool:
        nonlocal count
        outcome = outcomes[count]
        count += 1
        if count == len(outcomes):
            looks.stop()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    looks = Looks(look, lambda: True, interval_s, "nothing is sent")
    looks.wake()
    await asyncio.wait_for(looks.run(), 10)
    return count


def test_it_looks_again_at_once_while_there_is_more() -> None:
    # The pause after the others would be an hour; nothing follows the last.
    assert asyncio.run(looked([True, True, True], interval_s=3600.0)) == 3


@pytest.mark.parametrize("error", [AWAY, ValueError("a fault")], ids=["away", "fault"])
def test_it_goes_on_after_an_error(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AWAY_S", 0.0)

    assert asyncio.run(looked([error, False, error, False])) == 4


def test_it_does_not_look_while_nobody_waits() -> None:
    async def count_looks() -> int:
        count = 0
        waiting = [False]

        async def look() -> bool:
            nonlocal count
            count += 1
            looks.stop()
            return True

        looks = Looks(look, lambda: waiting[0], 0.0, "nothing is sent")
        running = asyncio.ensure_future(looks.run())
        looks.wake()
        for _ in range(10):
            await asyncio.sleep(0)
        before = count
        waiting[0] = True
        looks.wake()
        await asyncio.wait_for(running, 10)
        return count - before if before == 0 else -1

    assert asyncio.run(count_looks()) == 1
