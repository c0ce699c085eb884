"""What concurrent requests ask is read together, and never before it was asked."""

import asyncio
import threading
from collections.abc import Collection

import pytest

from web.together import Together


class Reads:
    """A read that waits until it is let go, and notes what each call was for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.go = threading.Semaphore(0)
        self.began = threading.Semaphore(0)

    def __call__(self, keys: Collection[str]) -> dict[str, int]:
        self.calls.append(tuple(keys))
        self.began.release()
        assert self.go.acquire(timeout=30)
        if "broken" in keys:
            raise ValueError("this read failed")
        return {key: len(self.calls) for key in keys if key != "unknown"}

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.began.acquire, True, 30)


def together(reads: Reads) -> Together[str, int]:
    return Together(reads, lambda _: None)


def test_those_who_ask_during_a_read_share_the_next_one() -> None:
    async def ask() -> list[int | None]:
        first = asyncio.create_task(one.get("a"))
        await reads.has_begun()
        # Also "a" again: what is being read may be older than this question.
        late = [asyncio.create_task(one.get(key)) for key in ("a", "b", "b", "unknown")]
        await asyncio.sleep(0)
        reads.go.release(2)
        return list(await asyncio.gather(first, *late))

    reads = Reads()
    one = together(reads)

    assert asyncio.run(ask()) == [1, 2, 2, 2, None]
    assert reads.calls == [("a",), ("a", "b", "unknown")]


def test_an_error_is_the_answer_of_its_read_alone() -> None:
    async def ask() -> None:
        first = [asyncio.create_task(one.get(key)) for key in ("broken", "a")]
        await reads.has_begun()
        later = asyncio.create_task(one.get("b"))
        await asyncio.sleep(0)
        reads.go.release(2)
        for task in first:
            with pytest.raises(ValueError, match="this read failed"):
                await task
        assert await later == 2

    reads = Reads()
    one = together(reads)

    asyncio.run(ask())


def test_a_request_that_ends_early_ends_no_other() -> None:
    async def ask() -> int | None:
        gone, stays = (asyncio.create_task(one.get("a")) for _ in range(2))
        await reads.has_begun()
        gone.cancel()
        await asyncio.sleep(0)
        reads.go.release()
        return await stays

    reads = Reads()
    one = together(reads)

    assert asyncio.run(ask()) == 1
    assert reads.calls == [("a",)]


def test_one_series_does_not_wait_for_another() -> None:
    async def ask() -> list[int | None]:
        slow = asyncio.create_task(one.get("slow"))
        await reads.has_begun()
        quick = asyncio.create_task(one.get("quick"))
        await reads.has_begun()
        reads.go.release(2)
        return [await slow, await quick]

    reads = Reads()
    one: Together[str, int] = Together(reads, str)

    asyncio.run(ask())
    assert sorted(reads.calls) == [("quick",), ("slow",)]
