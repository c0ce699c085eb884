"""How many operations of a queue one small app may have with the workers, and which go first."""

from datetime import timedelta

import pytest

from models.turns import Sharing, capacities, head_start, share_of


@pytest.mark.parametrize(("capacity", "share"), [(0, 1), (1, 1), (2, 1), (3, 2), (16, 15)], ids=str)
def test_one_process_stays_free_for_other_apps(capacity: int, share: int) -> None:
    assert share_of(capacity) == share


@pytest.mark.parametrize(("capacity", "share"), [(0, 1), (1, 1), (2, 2), (16, 16)], ids=str)
def test_an_app_that_is_alone_has_all_processes(capacity: int, share: int) -> None:
    assert share_of(capacity, Sharing.PRIORITY) == share


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        pytest.param([], {}, id="no worker"),
        pytest.param([("quick", 4), ("quick", 2)], {"quick": 6}, id="two workers of a queue"),
        pytest.param([("quick, heavy", 4)], {"quick": 2, "heavy": 2}, id="divided"),
        pytest.param([("quick,heavy", 1)], {"quick": 1, "heavy": 1}, id="at least one"),
        pytest.param([("quick", None)], {"quick": 1}, id="a worker of an application"),
    ],
)
def test_the_processes_of_all_workers_of_a_queue_count(
    workers: list[tuple[str, int | None]], expected: dict[str, int]
) -> None:
    assert capacities(workers) == expected


def test_a_worker_of_several_queues_is_not_divided_where_one_app_is_alone() -> None:
    assert capacities([("quick, heavy", 4)], Sharing.PRIORITY) == {"quick": 4, "heavy": 4}


def test_a_point_of_priority_is_an_hour_of_waiting() -> None:
    assert [head_start(one) for one in (-100, 0, 5)] == [
        timedelta(hours=-100), timedelta(0), timedelta(hours=5)
    ]  # fmt: skip
