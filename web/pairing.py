"""Which waiting worker gets which job."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Protocol, TypeVar

# A small app and a queue.
Lane = tuple[int, str]


class Asker(Protocol):
    """A worker that asks for a job of a queue, of one small app or of any."""

    @property
    def app_id(self) -> int | None: ...
    @property
    def queue(self) -> str: ...


Job = TypeVar("Job")
Worker = TypeVar("Worker", bound=Asker)


def pair(
    workers: Iterable[Worker],
    jobs: Mapping[Lane, Sequence[Job]],
    served: dict[Lane, int],
    most: int,
) -> list[tuple[Job, Worker]]:
    """Return up to `most` jobs and their workers: the first worker is served first.

    It gets a job of the small app that was served longest ago; of apps never served, the first of
    `jobs` comes first. `served` numbers the lanes in the order in which they were served last, and
    is brought up to date.
    """
    left = {lane: deque(those) for lane, those in jobs.items()}
    numbers = count(max(served.values(), default=0) + 1)
    pairs: list[tuple[Job, Worker]] = []
    for worker in workers:
        if len(pairs) == most:
            break
        lanes = [lane for lane in left if _may_take(worker, lane)]
        if not lanes:
            continue
        lane = min(lanes, key=lambda one: served.get(one, 0))
        served[lane] = next(numbers)
        pairs.append((left[lane].popleft(), worker))
        if not left[lane]:
            del left[lane]
    return pairs


def _may_take(worker: Asker, lane: Lane) -> bool:
    app_id, queue = lane
    return worker.queue == queue and worker.app_id in {None, app_id}
