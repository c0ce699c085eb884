"""Who waits first is served first, with the oldest job."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from web.dispatcher import pair

BUSY, OTHER = 1, 2
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Worker:
    name: str
    app_id: int | None = None
    queue: str = "quick"


@dataclass(frozen=True)
class Job:
    name: str
    recorded_at: datetime


def jobs(busy: str, other: str) -> dict[tuple[int, str], Any]:
    """Return jobs of both apps, recorded in the order of their letters."""
    return {
        (app, "quick"): [Job(one, NOON + timedelta(seconds=ord(one))) for one in names]
        for app, names in ((BUSY, busy), (OTHER, other))
    }


def paired(workers: list[Any], waiting: dict[tuple[int, str], Any], most: int = 10) -> list[str]:
    found: Any = pair(workers, waiting, most)
    return [f"{job.name} {worker.name}" for job, worker in found]


def test_the_oldest_job_goes_to_the_first_worker() -> None:
    three = [Worker("1"), Worker("2"), Worker("3")]

    assert paired(three, jobs(busy="ac", other="bd")) == ["a 1", "b 2", "c 3"]


def test_a_worker_gets_only_what_it_asks_for() -> None:
    waiting = [Worker("heavy", queue="heavy"), Worker("own", OTHER), Worker("any")]

    assert paired(waiting, jobs(busy="a", other="b")) == ["b own", "a any"]


def test_no_more_are_paired_than_are_taken_at_once() -> None:
    assert paired([Worker("1"), Worker("2"), Worker("3")], jobs(busy="abc", other=""), 2) == [
        "a 1",
        "b 2",
    ]
