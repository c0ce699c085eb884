"""Downloads of rows: few at a time, each in bounded memory and within a time."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anyio
import anyio.to_thread
from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from models.errors import SchedulerError
from runtime.logs.events import EventLog
from services.installation import Installation
from web.problems import DownloadsFull, TooManyOpen

logger = EventLog("minutebook.web")
# Downloads at a time, in all and of one small app.
MOST, MOST_OF_APP = 4, 2

# Opens what a download sends, piece by piece.
Open = Callable[[], AbstractContextManager[Iterator[bytes]]]


@dataclass
class DownloadSlots:
    """The downloads that go on. For the event loop alone."""

    # How long one may take, whether its client reads or not.
    longest_s: float
    _taken: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def one(self, app: str) -> Iterator[None]:
        """Take a place for a small app. Raises TooManyOpen and DownloadsFull."""
        if self._taken[app] >= MOST_OF_APP:
            text = f'small app "{app}" has {MOST_OF_APP} downloads in progress'
            raise TooManyOpen(f"{text}; try again when one has ended")
        if self._taken.total() >= MOST:
            text = f"{MOST} downloads are in progress"
            raise DownloadsFull(f"{text}; try again when one has ended")
        self._taken[app] += 1
        try:
            yield
        finally:
            self._taken[app] -= 1
            self._taken += Counter()


class Download(StreamingResponse):
    """Sends what `opens` yields; it is opened when a place is free, and closed with the request."""

    def __init__(self, request: Request, opened: Installation, opens: Open, kind: str) -> None:
        super().__init__((), media_type=kind)
        self._places: DownloadSlots = request.app.state.downloads
        self._is_open = request.app.state.open_requests.one(opened.actor)
        self._app = opened.app_name
        self._opens = opens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._is_open, self._places.one(self._app):
            async with _opened(self._opens) as pieces:
                self.body_iterator = _each(pieces)
                try:
                    with anyio.move_on_after(self._places.longest_s):
                        await super().__call__(scope, receive, send)
                except SchedulerError as error:
                    # The answer is left without its end: no part of the rows passes for all.
                    logger.warning(
                        "download_cut",
                        "a download of small app {app} was cut: {error}",
                        self._app,
                        error,
                    )


@asynccontextmanager
async def _opened(opens: Open) -> AsyncIterator[Iterator[bytes]]:
    opened = opens()
    pieces = await anyio.to_thread.run_sync(opened.__enter__)
    try:
        yield pieces
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(opened.__exit__, None, None, None)


async def _each(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while piece := await anyio.to_thread.run_sync(next, pieces, b""):
        yield piece
