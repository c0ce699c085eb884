"""The loop of a reader that asks the database on behalf of all requests that wait."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from runtime.database import DATABASE_AWAY, reason_of
from runtime.logs.events import EventLog

logger = EventLog("minutebook.web")

# How long to leave the database alone after an error.
AWAY_S = 1.0


@dataclass(eq=False)
class Looks:
    """Looks again and again while a request waits, until `stop`.

    `look()` returns whether to look again at once. It may fail: the next look comes all the same.
    """

    _look: Callable[[], Awaitable[bool]]
    _somebody_waits: Callable[[], bool]
    _interval_s: float
    # What is not done while the database is unavailable, for the log: "no job is handed out".
    _without: str
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: bool = False

    def wake(self) -> None:
        """Look, because a request waits now."""
        self._wanted.set()

    def stop(self) -> None:
        """Stop looking."""
        self.stopped = True
        self._wanted.set()

    async def run(self) -> None:
        """Look until `stop`."""
        while not self.stopped:
            await self._wanted.wait()
            if self._somebody_waits():
                await asyncio.sleep(await self._pause_after_look())
            else:
                self._wanted.clear()

    async def _pause_after_look(self) -> float:
        try:
            return 0.0 if await self._look() else self._interval_s
        except DATABASE_AWAY as error:
            logger.warning(
                "look_without_database",
                "{look} while the database is unavailable: {error}",
                self._without,
                reason_of(error),
            )
        except Exception:  # the next look must come
            logger.exception("look_failed", "{look} after an unexpected error", self._without)
        return AWAY_S
