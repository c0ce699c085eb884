"""How many operations of a queue each small app may have with the workers, and which go first."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from models.turns import Held, Worker, head_start, line_of, next_turns

QUICK = [Worker("one", frozenset({"quick"}), 3), Worker("two", frozenset({"quick"}), 1)]
BOTH = [Worker("both", frozenset({"quick", "heavy"}), 2)]


def given(
    held: Sequence[Held],
    waiting: dict[int, int],
    *,
    reserve: int = 0,
    after: int = 0,
    workers: Sequence[Worker] = QUICK,
) -> list[int]:
    """Return the small apps whose operations get a turn on `quick`, in order."""
    ids = {
        app: [UUID(int=app * 1000 + number) for number in range(count)]
        for app, count in waiting.items()
    }
    line = line_of("quick", workers, held, reserve)
    return [id.int // 1000 for id in next_turns(line, ids, after)]


def runs(app: int, count: int = 1, worker: str = "one", queue: str = "quick") -> Held:
    return Held(app, queue, worker, count)


def sent(app: int, count: int = 1, queue: str = "quick") -> Held:
    return Held(app, queue, None, count)


def test_an_app_gets_every_process_that_the_others_do_not_use() -> None:
    assert given([], {1: 9}) == [1, 1, 1, 1]
    assert given([runs(1, 2)], {1: 9}) == [1, 1]


def test_what_was_sent_will_take_a_process() -> None:
    assert given([runs(1, 2), sent(1)], {1: 9}) == [1]


def test_an_app_without_any_sends_one_for_the_next_process_that_becomes_free() -> None:
    assert given([runs(1, 4)], {1: 9, 2: 9}) == [2]
    assert given([runs(1, 4), sent(2)], {1: 9, 2: 9, 3: 9}) == [3]


def test_a_process_that_becomes_free_goes_to_the_app_that_holds_the_fewest() -> None:
    assert given([runs(1, 2), runs(2, 1)], {1: 9, 2: 9}) == [2]
    assert given([runs(1, 2)], {1: 9, 2: 9}) == [2, 2]
    assert given([runs(1, 2), sent(2)], {1: 9, 2: 9}) == [2]


def test_equals_are_served_in_a_circle() -> None:
    held = [runs(1), runs(2), runs(3)]
    waiting = {1: 9, 2: 9, 3: 9}

    assert [given(held, waiting, after=app) for app in (1, 2, 3)] == [[2], [3], [1]]
    assert given([], waiting, after=1) == [2, 3, 1, 2]


def test_a_reserve_is_lent_to_no_app_alone() -> None:
    assert given([], {1: 9}, reserve=1) == [1, 1, 1]
    assert given([runs(1, 3)], {1: 9, 2: 9}, reserve=1) == [2]
    assert given([], {1: 9}, reserve=9) == [1]


def test_without_a_worker_each_app_sends_one() -> None:
    assert given([], {1: 9, 2: 9}, workers=[]) == [1, 2]
    assert given([sent(1), runs(2, worker="gone")], {1: 9, 2: 9}, workers=[]) == []


def test_what_runs_on_a_lost_worker_takes_no_process_of_the_others() -> None:
    assert given([runs(1, 4, worker="gone")], {1: 9}) == [1, 1, 1, 1]


def test_a_process_of_several_queues_is_free_for_each_of_them() -> None:
    assert given([], {1: 9}, workers=BOTH) == [1, 1]
    assert given([runs(1, worker="both", queue="heavy")], {1: 9}, workers=BOTH) == [1]
    assert given([sent(1, 2, queue="heavy")], {1: 9}, workers=BOTH) == [1, 1]


def test_what_holds_a_process_of_several_queues_counts_for_each_of_them() -> None:
    held = [runs(1, 2, worker="both", queue="heavy")]

    assert given(held, {1: 9, 2: 9}, workers=BOTH) == [2]


def test_a_point_of_priority_is_an_hour_of_waiting() -> None:
    assert [head_start(one) for one in (-100, 0, 5)] == [
        timedelta(hours=-100), timedelta(0), timedelta(hours=5)
    ]  # fmt: skip
