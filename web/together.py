"""Reads for all requests that ask at the same time: one thread and one statement for many."""

import asyncio
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio.to_thread
from fastapi import Response

from views.view import Shown

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(eq=False)
class Together(Generic[Key, Value]):
    """Answers requests of the event loop; each read takes all that came during the one before.

    No answer is older than its question: a read begins after the requests that it is for. Keys of
    one series share their reads and their errors; different series are read side by side. `read`
    is called in a thread; the answer to a key that it leaves out is None.
    """

    _read: Callable[[Collection[Key]], Mapping[Key, Value]]
    _series_of: Callable[[Key], Hashable]
    # The keys that were asked for since the last read began, for each series of reads that is going
    # on.
    _asked: dict[Hashable, dict[Key, asyncio.Future[Value | None]]] = field(default_factory=dict)
    _series: set[asyncio.Task[None]] = field(default_factory=set)

    async def get(self, key: Key) -> Value | None:
        """Return the value of a key, None if the read leaves it out; raises what the read does."""
        series = self._series_of(key)
        if series not in self._asked:
            self._asked[series] = {}
            task = asyncio.create_task(self._read_on(series))
            self._series.add(task)
            task.add_done_callback(self._series.discard)
        answer = self._asked[series].get(key)
        if answer is None:
            answer = self._asked[series][key] = asyncio.get_running_loop().create_future()
        # One request that ends early leaves the answer to the others.
        return await asyncio.shield(answer)

    async def _read_on(self, series: Hashable) -> None:
        while asked := self._asked.pop(series, None):
            self._asked[series] = {}
            try:
                found = await anyio.to_thread.run_sync(self._read, tuple(asked))
            except Exception as error:  # each request answers it
                _fail(asked.values(), error)
            else:
                for key, answer in asked.items():
                    answer.set_result(found.get(key))


def _fail(answers: Collection[asyncio.Future[Value | None]], error: Exception) -> None:
    for answer in answers:
        answer.set_exception(error)
        # Retrieved here, in case all requests have gone.
        answer.exception()


def json_of(view: Shown) -> bytes:
    """Return the body of an answer, written once for all requests that asked for it."""
    return view.model_dump_json(by_alias=True).encode()


def answer(body: bytes) -> Response:
    """Return the answer with that body."""
    return Response(body, media_type="application/json")
