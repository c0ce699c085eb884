"""Which waiting worker gets which job."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

# A small app and a queue.
Lane = tuple[int, str]


class Asker(Protocol):
    """A worker that asks for a job of a queue, of one small app or of any."""

    @property
    def app_id(self) -> int | None: ...
    @property
    def queue(self) -> str: ...


class Offered(Protocol):
    """A job that waits."""

    @property
    def recorded_at(self) -> datetime: ...


Job = TypeVar("Job", bound=Offered)
Worker = TypeVar("Worker", bound=Asker)


def pair(
    workers: Iterable[Worker], jobs: Mapping[Lane, Sequence[Job]], most: int
) -> list[tuple[Job, Worker]]:
    """Return up to `most` jobs and their workers: the first worker gets the oldest job."""
    left = {lane: deque(those) for lane, those in jobs.items()}
    pairs: list[tuple[Job, Worker]] = []
    for worker in workers:
        if len(pairs) == most:
            break
        its = [those for lane, those in left.items() if those and _may_take(worker, lane)]
        if its:
            pairs.append((min(its, key=lambda those: those[0].recorded_at).popleft(), worker))
    return pairs


def _may_take(worker: Asker, lane: Lane) -> bool:
    app_id, queue = lane
    return worker.queue == queue and worker.app_id in {None, app_id}
