"""Hand out jobs: one reader asks the database on behalf of all workers that wait."""

import asyncio
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from models.errors import LeaseLost
from models.store.operations.jobs import Lane, Offer
from models.store.operations.take import ClaimRequest
from runtime.clock import monotonic
from runtime.database import DATABASE_AWAY, reason_of
from runtime.logs.events import EventLog
from services.installation import Installation
from services.jobs import claim, work
from services.jobs.claim import JobToDo
from web.plain import STOPPING
from web.problems import Stopping

logger = EventLog("minutebook.web")

INTERVAL_S = 0.05
# How long to leave the database alone after an error.
AWAY_S = 1.0
# Jobs taken in one transaction: the first workers get theirs before the last are looked up.
BATCH = 250
# How many jobs are taken separately at the same time: each takes a thread and a connection.
AT_ONCE = 4
# A worker that asked within this span counts as listening.
ASKED_WITHIN_S = 60.0
NOTED_EACH_S = 10.0
# A database that is silent must not hold up the stop.
STOP_NOTED_WITHIN_S = 1.0


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

    @property
    def has_job(self) -> bool:
        """Whether it was answered with a job."""
        is_open = not self.answer.done() or self.answer.cancelled()
        if is_open or self.answer.exception() is not None:
            return False
        return self.answer.result() is not None


Pair = tuple[Offer, _Waiter]


@dataclass
class JobDispatcher:
    """Workers that wait take no thread and no database connection; the first to ask is served."""

    opened: Installation
    _waiting: dict[int, _Waiter] = field(default_factory=dict)
    _count: int = 0
    # When each queue was last asked for.
    _asked: dict[str, float] = field(default_factory=dict)
    _noted_at: float | None = None

    def __post_init__(self) -> None:
        self._name = f"web/{socket.gethostname()}/{os.getpid()}"
        self._limit = anyio.CapacityLimiter(AT_ONCE)
        # Set while a worker may wait.
        self._wanted = asyncio.Event()
        self.is_stopped = False

    async def run(self) -> None:
        """Look for jobs while workers wait, until `stop`; a look that fails is followed by more."""
        while not self.is_stopped:
            await self._wanted.wait()
            if self._waiting:
                await asyncio.sleep(await self._pause_after_look())
            else:
                self._wanted.clear()

    async def _pause_after_look(self) -> float:
        try:
            return 0.0 if await self._look() else INTERVAL_S
        except DATABASE_AWAY as error:
            logger.warning(
                "look_without_database",
                "no job is handed out while the database is unavailable: {error}",
                reason_of(error),
            )
        except Exception:  # the next look must come
            logger.exception("look_failed", "no job is handed out after an unexpected error")
        return AWAY_S

    def stop(self) -> None:
        """Refuse all workers that wait, and all that come later."""
        self.is_stopped = True
        self._wanted.set()
        for waiter in self._waiting.values():
            if not waiter.is_served and not waiter.answer.done():
                waiter.answer.set_exception(Stopping(STOPPING))

    async def note_stop(self) -> None:
        """Record that no worker asks this process any more, if the database answers at once."""
        if self._noted_at is None:
            return
        with suppress(*DATABASE_AWAY), anyio.move_on_after(STOP_NOTED_WITHIN_S):
            await anyio.to_thread.run_sync(
                claim.note_stop, self.opened, self._name, abandon_on_cancel=True
            )

    async def next(
        self, app_id: int | None, queue: str, worker: str, gone: Callable[[], Awaitable[None]]
    ) -> JobToDo | None:
        """Return a job as soon as there is one, None if the time ends or the worker is gone.

        `gone()` ends when the worker goes away. Raises Stopping.
        """
        if self.is_stopped:
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

    async def _look(self) -> bool:
        """Take the jobs that are there for waiting workers; return whether there may be more."""
        began = monotonic()
        await self._note()
        asked: Counter[Lane] = Counter((one.app_id, one.queue) for one in self._free())
        most = {lane: min(count, BATCH) for lane, count in asked.items()}
        found = await anyio.to_thread.run_sync(claim.offers, self.opened, most, limiter=self._limit)
        pairs = pair(self._free(), found, BATCH)
        if not pairs:
            return False
        count = await self._take(pairs)
        if count:
            figures = {"promoted_count": count, "poll_duration_ms": _ms(monotonic() - began)}
            work.log_event(logging.INFO, "poll_stats", figures)
        return count > 0

    def _free(self) -> list[_Waiter]:
        """Return the workers that wait and have been given nothing, the first to ask first."""
        return [one for one in self._waiting.values() if not one.answer.done()]

    async def _take(self, pairs: Sequence[Pair]) -> int:
        """Take these jobs, together where nothing keeps them back; return how many were taken."""
        for _, waiter in pairs:
            waiter.is_served = True
        try:
            taken = await anyio.to_thread.run_sync(
                claim.take_all,
                self.opened,
                [_wanted(offer, waiter) for offer, waiter in pairs],
                limiter=self._limit,
            )
            async with anyio.create_task_group() as group:
                for offer, waiter in pairs:
                    if offer.id in taken.undecided:
                        group.start_soon(self._take_alone, offer, waiter)
                    elif (job := self._left(waiter, taken.jobs.get(offer.id))) is not None:
                        group.start_soon(self._give_back, job)
        finally:
            for _, waiter in pairs:
                if waiter.is_served:
                    # The taking failed: it waits for another job, unless its time has ended.
                    self._left(waiter, None)
        return sum(waiter.has_job for _, waiter in pairs)

    async def _take_alone(self, offer: Offer, waiter: _Waiter) -> None:
        job: JobToDo | None = None
        try:
            job = await anyio.to_thread.run_sync(
                claim.take, self.opened, _wanted(offer, waiter), limiter=self._limit
            )
        except DATABASE_AWAY as error:
            logger.warning(
                "job_not_taken",
                "a job could not be taken, the database is unavailable: {error}",
                reason_of(error),
            )
        except Exception:  # the others get theirs
            logger.exception(
                "operation_not_taken", "operation {operation} could not be taken", offer.id
            )
        left = self._left(waiter, job)
        if left is not None:
            await self._give_back(left)

    def _left(self, waiter: _Waiter, job: JobToDo | None) -> JobToDo | None:
        """Answer a worker, if with a job or for good; return the job if the worker is gone."""
        waiter.is_served = False
        is_over = waiter.is_late or self.is_stopped
        if (job is not None or is_over) and not waiter.answer.done():
            waiter.answer.set_result(job)
        return job if waiter.is_gone else None

    async def _give_back(self, job: JobToDo) -> None:
        try:
            await anyio.to_thread.run_sync(work.give_back, self.opened, job, limiter=self._limit)
        except (LeaseLost, *DATABASE_AWAY) as error:
            logger.warning(
                "job_left_to_lease",
                "a job whose worker disconnected waits until its lease expires: {error}",
                error,
            )

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
            claim.note_queues, self.opened, self._name, os.getpid(), queues, limiter=self._limit
        )
        self._noted_at = now


def pair(
    waiters: Iterable[_Waiter], offers: Mapping[tuple[int, str], Sequence[Offer]], most: int
) -> list[Pair]:
    """Return up to `most` jobs and their workers: the first worker gets the oldest job."""
    left = {lane: deque(those) for lane, those in offers.items()}
    pairs: list[Pair] = []
    for one in waiters:
        if len(pairs) == most:
            break
        its = [
            those
            for (app_id, queue), those in left.items()
            if those and one.queue == queue and one.app_id in {None, app_id}
        ]
        if its:
            pairs.append((min(its, key=lambda those: those[0].recorded_at).popleft(), one))
    return pairs


def _wanted(offer: Offer, waiter: _Waiter) -> ClaimRequest:
    return ClaimRequest(offer.id, offer.attempt, waiter.worker)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
