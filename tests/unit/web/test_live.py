"""Whom streams end for: one reader looks after all listeners."""

import asyncio
from collections.abc import Collection

from web.live import Live


def test_one_statement_looks_up_the_tokens_of_all_listeners() -> None:
    asked: list[set[str]] = []

    def still_valid(ids: Collection[str]) -> Collection[str]:
        asked.append(set(ids))
        return {"b", "c"}

    async def listen() -> list[str | None]:
        live = Live[str]("status", lambda keys: {}, still_valid)
        reader = asyncio.create_task(live.looks.run())
        streams = [live.listen("shop", None, id) for id in ("a", "b", "c")]
        ended = [asyncio.ensure_future(anext(one)) for one in streams]
        first, _ = await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
        live.stop()
        await asyncio.gather(*ended, reader)
        return [one.result().event for one in first]

    assert asyncio.run(listen()) == ["unauthorized"]
    assert asked == [{"a", "b", "c"}]
