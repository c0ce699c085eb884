"""What an application tests its tasks with, and the readers that it registers."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from celery import Celery
from celery.result import denied_join_result

import minutebook
from minutebook.readers import _registered, reader, registered_readers
from minutebook.testing import Reported, make_operation, run_followed

app = Celery("shop", broker="memory://", set_as_current=False)


@app.task(bind=True)
def report(self, shop: str, *, fails: bool = False) -> list[object]:  # type: ignore[no-untyped-def]
    operation = minutebook.current_operation()
    assert operation is not None
    operation.progress(1, 3, f"in {shop}", blocking=True)
    if fails:
        raise ValueError("no paper")
    return [self.request.id == str(operation.operation_id), operation.run_number]


def test_a_task_runs_with_an_operation_of_its_own() -> None:
    operation = make_operation(run_number=7)

    assert run_followed(report, ["Paris"], operation=operation) == [True, 7]
    assert operation.reported == [Reported(1, 3, "in Paris", None, True)]
    assert minutebook.current_operation() is None


def test_a_task_runs_beside_a_worker_in_the_same_process() -> None:
    with denied_join_result():
        assert run_followed(report, ["Paris"], operation=make_operation()) == [True, 1]


def test_what_a_task_raises_is_raised_and_its_operation_is_over() -> None:
    with pytest.raises(ValueError, match="no paper"):
        run_followed(report, ["Paris"], {"fails": True})

    assert minutebook.current_operation() is None


def test_an_operation_has_what_the_real_one_has() -> None:
    seen = datetime(2026, 11, 1, tzinfo=UTC)
    made = make_operation(last_success_at=seen, time_limit=timedelta(minutes=1), subject="ann")

    assert (made.last_success_at, made.subject, made.attempt) == (seen, "ann", 1)
    assert timedelta(seconds=50) < made.time_left() <= timedelta(minutes=1)
    assert not made.should_stop()
    assert make_operation(time_limit=timedelta(0)).should_stop()


def test_an_operation_stops_after_so_many_questions() -> None:
    made = make_operation(stops_after=2)

    assert [made.should_stop() for _ in range(4)] == [False, False, True, True]


def test_a_field_that_no_operation_has_is_refused() -> None:
    with pytest.raises(TypeError, match="has no 'run'; it has operation_id, occurrence_at"):
        make_operation(run=7)


Row = dict[str, Any]


@pytest.fixture(autouse=True)
def _own_readers() -> Iterator[None]:
    before = dict(_registered)
    yield
    _registered.clear()
    _registered.update(before)


class Mapper:
    def __call__(self, row: Row, _context: Any) -> Row:
        return row


def with_option(row: Row, _context: Any, strict: bool = False) -> Row:
    return {**row, "strict": strict}


@pytest.mark.parametrize(
    "mapper",
    [
        pytest.param(lambda row, _context: row, id="a_function"),
        pytest.param(Mapper(), id="an_object"),
        pytest.param(partial(with_option, strict=True), id="a_partial"),
        pytest.param(max, id="one_without_a_signature"),
    ],
)
def test_a_mapper_takes_a_row_and_the_context(mapper: Callable[..., Any]) -> None:
    reader("r", mapper=mapper)(lambda _context: [])

    assert registered_readers()["r"].mapper is mapper


@pytest.mark.parametrize("mapper", [lambda _row: None, lambda _a, _b, _c: None])
def test_another_mapper_is_refused_when_it_is_registered(mapper: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="must take two arguments, the row and the context"):
        reader("r", mapper=mapper)(lambda _context: [])
