"""Turns of small apps: who runs, who waits, and who comes next."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from web.problems import TooManyRequests
from web.turns import Turns


class Requests:
    """Requests that run until they are told to end."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}

    async def one(self, name: str) -> None:
        """Run one request; the name begins with its app."""
        async with self.turns.one(name[0]):
            self.begun.append(name)
            await self.ends.setdefault(name, asyncio.Event()).wait()

    async def start(self, *names: str) -> list[asyncio.Task[None]]:
        """Start requests in order; return once each runs or waits."""
        tasks = [asyncio.create_task(self.one(name)) for name in names]
        await settled()
        return tasks

    async def end(self, name: str) -> None:
        """End one that runs, and let the next begin."""
        self.ends[name].set()
        await settled()


async def settled() -> None:
    """Let all that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_one_app_has_one_turn_and_all_have_so_many() -> None:
    async def test() -> None:
        requests = Requests(Turns(2))
        await requests.start("a1", "a2", "b1", "c1")
        assert requests.begun == ["a1", "b1"]

        await requests.end("b1")
        assert requests.begun == ["a1", "b1", "c1"]

    run(test())


def test_the_apps_take_turns() -> None:
    async def test() -> None:
        requests = Requests(Turns(1))
        await requests.start("a1", "a2", "a3", "b1", "b2")
        for name in ("a1", "a2", "b1", "a3"):
            await requests.end(name)

        assert requests.begun == ["a1", "a2", "b1", "a3", "b2"]

    run(test())


def test_one_that_is_given_up_leaves_its_turn_to_the_next() -> None:
    async def test() -> None:
        requests = Requests(Turns(1))
        running, waiting, _next = await requests.start("a1", "a2", "b1")
        waiting.cancel()
        await settled()
        running.cancel()
        await settled()
        assert requests.begun == ["a1", "b1"]

        await requests.end("b1")
        await requests.start("c1")
        assert requests.begun == ["a1", "b1", "c1"]

    run(test())


def test_one_that_is_given_up_in_its_turn_passes_it_on() -> None:
    """It was woken, and cancelled before it went on."""

    async def test() -> None:
        requests = Requests(Turns(1))
        _running, woken, _next = await requests.start("a1", "b1", "c1")
        requests.ends["a1"].set()
        while "b" not in requests.turns._running:
            await asyncio.sleep(0)
        woken.cancel()
        await settled()

        assert requests.begun == ["a1", "c1"]

    run(test())


def test_no_more_wait_than_may() -> None:
    async def test() -> None:
        requests = Requests(Turns(1, most_waiting=1))
        await requests.start("a1", "a2")

        with pytest.raises(TooManyRequests, match='1 changes and previews of small app "a" wait'):
            await requests.one("a3")

    run(test())
