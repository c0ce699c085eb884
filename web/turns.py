"""Turns of small apps: heavy requests of one app leave threads and CPU to all others."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from web.problems import TooManyRequests

# How many heavy requests of one small app may wait, each with its body in memory.
MOST_WAITING = 32


@dataclass
class Turns:
    """The heavy requests that run at a time: `most` in all, and one of each small app.

    Those that wait hold no thread. The app that was served longest ago is served next. For the
    event loop alone.
    """

    most: int
    most_waiting: int = MOST_WAITING
    _running: set[str] = field(default_factory=set)
    # The apps that wait, in the order in which they are served.
    _waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)

    @asynccontextmanager
    async def one(self, app: str) -> AsyncIterator[None]:
        """Wait for the turn of a small app, and take it. Raises TooManyRequests."""
        await self._turn_of(app)
        try:
            yield
        finally:
            self._end(app)

    async def _turn_of(self, app: str) -> None:
        if app not in self._running and len(self._running) < self.most:
            self._running.add(app)
            return
        queue = self._waiting.setdefault(app, deque())
        if len(queue) >= self.most_waiting:
            text = f'{self.most_waiting} changes and previews of small app "{app}" wait'
            raise TooManyRequests(f"{text}; send the next when one is answered")
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(app, turn)
            else:
                self._end(app)
            raise

    def _forget(self, app: str, turn: asyncio.Future[None]) -> None:
        self._waiting[app].remove(turn)
        if not self._waiting[app]:
            del self._waiting[app]

    def _end(self, app: str) -> None:
        self._running.remove(app)
        for name in tuple(self._waiting):
            if len(self._running) >= self.most:
                return
            if name not in self._running:
                self._begin(name)

    def _begin(self, app: str) -> None:
        queue = self._waiting.pop(app)
        turn = queue.popleft()
        if queue:
            # Behind all others.
            self._waiting[app] = queue
        self._running.add(app)
        turn.set_result(None)
