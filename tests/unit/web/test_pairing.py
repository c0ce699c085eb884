"""Who waits first is served first, and small apps take turns."""

from dataclasses import dataclass

from web.pairing import Lane, pair

BUSY, OTHER, THIRD = 1, 2, 3


@dataclass(frozen=True)
class Worker:
    """A worker that waits."""

    name: str
    app_id: int | None = None
    queue: str = "quick"


def workers(count: int, app_id: int | None = None) -> list[Worker]:
    return [Worker(f"w{number}", app_id) for number in range(count)]


def jobs(**counts: int) -> dict[Lane, list[str]]:
    apps = {"busy": BUSY, "other": OTHER, "third": THIRD}
    return {
        (apps[app], "quick"): [f"{app}{number}" for number in range(count)]
        for app, count in counts.items()
    }


def test_apps_take_turns_until_one_has_nothing_left() -> None:
    pairs = pair(workers(6), jobs(busy=100, other=2), {}, 10)

    assert [job for job, _ in pairs] == ["busy0", "other0", "busy1", "other1", "busy2", "busy3"]
    assert [worker.name for _, worker in pairs] == [f"w{number}" for number in range(6)]


def test_the_turns_go_on_from_look_to_look() -> None:
    served: dict[Lane, int] = {}

    taken = [pair(workers(1), jobs(busy=9, other=9, third=9), served, 10) for _ in range(5)]

    assert [job for ((job, _),) in taken] == ["busy0", "other0", "third0", "busy0", "other0"]


def test_a_new_app_goes_before_those_that_were_served() -> None:
    served: dict[Lane, int] = {}
    pair(workers(2), jobs(busy=9, other=9), served, 10)

    ((job, _),) = pair(workers(1), jobs(busy=9, other=9, third=1), served, 10)

    assert job == "third0"


def test_a_worker_gets_only_what_it_asks_for() -> None:
    waiting = [Worker("heavy", queue="heavy"), Worker("own", OTHER), Worker("any")]

    pairs = pair(waiting, jobs(busy=1, other=1), {}, 10)

    assert [(job, worker.name) for job, worker in pairs] == [("other0", "own"), ("busy0", "any")]


def test_no_more_are_paired_than_are_taken_at_once() -> None:
    assert len(pair(workers(5), jobs(busy=5), {}, 2)) == 2
