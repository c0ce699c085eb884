"""Hand out jobs: one reader asks the database for all workers that wait."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from models.errors import LeaseLost
from models.store.operations.jobs import Offer
from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY
from views.installation import Installation
from views.jobs import work
from views.jobs.work import JobToDo
from web.problems import Stopping

logger = logging.getLogger("minutehand.web")

INTERVAL_S = 0.1
# How long to leave the database alone after an error.
AWAY_S = 1.0
# Jobs taken at once: each takes a thread and a database connection.
AT_ONCE = 4
# A worker that asked within this span counts as listening.
ASKED_WITHIN_S = 60.0
NOTED_EACH_S = 10.0
STOPPING = "the server is stopping; ask again in a moment"


@dataclass(eq=False)
class _Waiter:
    """A worker that waits for a job of a queue, of one small app or of any."""

    app_id: int | None
    queue: str
    worker: str
    answer: asyncio.Future[JobToDo | None]
    # A job is being taken for it: it waits for that one even beyond its time.
    is_served: bool = False
    is_late: bool = False
    is_gone: bool = False

    def may_take(self, offer: Offer) -> bool:
        """Return whether the job is one that this worker asks for."""
        is_of_app = self.app_id is None or self.app_id == offer.small_app_id
        return is_of_app and self.queue == offer.queue and not self.is_served


@dataclass
class Handout:
    """Workers that wait take no thread and no database connection; the first to ask is served."""

    opened: Installation
    _waiting: dict[int, _Waiter] = field(default_factory=dict)
    _count: int = 0
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)
    _stopped: bool = False
    # When each queue was last asked for.
    _asked: dict[str, float] = field(default_factory=dict)
    _noted_at: float | None = None

    def __post_init__(self) -> None:
        self._name = f"web/{socket.gethostname()}/{os.getpid()}"
        self._limit = anyio.CapacityLimiter(AT_ONCE)

    async def run(self) -> None:
        """Look for jobs as long as a worker waits, until `stop`."""
        while not self._stopped:
            await self._wanted.wait()
            if not self._waiting:
                self._wanted.clear()
                continue
            pause_s = INTERVAL_S
            try:
                await self._look()
            except DATABASE_AWAY as error:
                logger.warning("no job is handed out while the database is away: %s", error)
                pause_s = AWAY_S
            except Exception:  # the next look must come
                logger.exception("jobs could not be handed out")
                pause_s = AWAY_S
            await asyncio.sleep(pause_s)

    def stop(self) -> None:
        """Refuse all that wait, and whoever comes."""
        self._stopped = True
        self._wanted.set()
        for waiter in self._waiting.values():
            if not waiter.is_served and not waiter.answer.done():
                waiter.answer.set_exception(Stopping(STOPPING))

    async def note_stop(self) -> None:
        """Record that no worker asks this process any more."""
        if self._noted_at is None:
            return
        with suppress(*DATABASE_AWAY):
            await anyio.to_thread.run_sync(work.note_stop, self.opened, self._name)

    async def next(
        self, app_id: int | None, queue: str, worker: str, gone: Callable[[], Awaitable[None]]
    ) -> JobToDo | None:
        """Return a job as soon as there is one, None if the time ends or the worker is gone.

        `gone()` ends when the worker goes away. Raises Stopping.
        """
        if self._stopped:
            raise Stopping(STOPPING)
        waiter = _Waiter(app_id, queue, worker, asyncio.get_running_loop().create_future())
        self._count += 1
        number = self._count
        self._waiting[number] = waiter
        self._asked[queue] = monotonic()
        self._wanted.set()
        leaving = asyncio.ensure_future(gone())
        either: set[asyncio.Future[Any]] = {waiter.answer, leaving}
        try:
            timeout_s = self.opened.settings.work.pop_timeout_s
            await asyncio.wait(either, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            waiter.is_late = True
            waiter.is_gone = leaving.done()
            if not waiter.answer.done() and not waiter.is_served:
                return None
            return await waiter.answer
        except asyncio.CancelledError:
            waiter.is_gone = True
            raise
        finally:
            leaving.cancel()
            del self._waiting[number]

    async def _look(self) -> None:
        """Take the jobs that are there for those who wait."""
        waiting = list(self._waiting.values())
        began = monotonic()
        await self._note()
        asked: dict[int | None, set[str]] = {}
        for waiter in waiting:
            asked.setdefault(waiter.app_id, set()).add(waiter.queue)
        found = await anyio.to_thread.run_sync(
            work.offers, self.opened, asked, len(waiting), limiter=self._limit
        )
        pairs = self._paired(found)
        async with anyio.create_task_group() as group:
            for offer, waiter in pairs:
                group.start_soon(self._serve, offer, waiter)
        count = sum(waiter.answer.done() for _, waiter in pairs)
        if count:
            figures = {"promoted_count": count, "poll_duration_ms": _ms(monotonic() - began)}
            work.log_event(logging.INFO, "poll_stats", figures)

    def _paired(self, offers: list[Offer]) -> list[tuple[Offer, _Waiter]]:
        pairs = []
        for offer in offers:
            free = (one for one in self._waiting.values() if one.may_take(offer))
            waiter = next((one for one in free if not one.answer.done()), None)
            if waiter is not None:
                waiter.is_served = True
                pairs.append((offer, waiter))
        return pairs

    async def _serve(self, offer: Offer, waiter: _Waiter) -> None:
        job: JobToDo | None = None
        try:
            job = await anyio.to_thread.run_sync(
                work.take, self.opened, offer, waiter.worker, limiter=self._limit
            )
        except DATABASE_AWAY as error:
            logger.warning("a job could not be taken, the database is away: %s", error)
        finally:
            waiter.is_served = False
            is_over = waiter.is_late or self._stopped
            if (job is not None or is_over) and not waiter.answer.done():
                waiter.answer.set_result(job)
        if job is not None and waiter.is_gone:
            await self._give_back(job)

    async def _give_back(self, job: JobToDo) -> None:
        try:
            await anyio.to_thread.run_sync(work.give_back, self.opened, job, limiter=self._limit)
        except (LeaseLost, *DATABASE_AWAY) as error:
            logger.warning("a job whose worker went away is left to its lease: %s", error)

    async def _note(self) -> None:
        """Record the queues that workers ask for, every few seconds."""
        now = monotonic()
        if self._noted_at is not None and now - self._noted_at < NOTED_EACH_S:
            return
        for waiter in self._waiting.values():
            self._asked[waiter.queue] = now
        queues = {queue for queue, at in self._asked.items() if now - at <= ASKED_WITHIN_S}
        self._asked = {queue: at for queue, at in self._asked.items() if queue in queues}
        await anyio.to_thread.run_sync(
            work.note_queues, self.opened, self._name, os.getpid(), queues, limiter=self._limit
        )
        self._noted_at = now


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
