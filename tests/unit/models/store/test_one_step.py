import pytest

from models.store.operations.external_worker import progress_columns


def test_progress_is_the_part_that_is_done() -> None:
    found = progress_columns({"done": 3, "total": 4, "message": "3 of 4", "other": 1})

    assert found == {"processed": 3, "total": 4, "message": "3 of 4", "progress": 0.75}


@pytest.mark.parametrize(("done", "expected"), [(9, 1.0), (-1, 0.0)])
def test_no_progress_is_beyond_its_ends(done: int, expected: float) -> None:
    assert progress_columns({"done": done, "total": 4})["progress"] == expected


@pytest.mark.parametrize("count", [2**63, -(2**63), float("inf"), float("nan")])
def test_a_count_that_no_column_holds_is_left_out(count: float) -> None:
    assert progress_columns({"done": count, "total": 4}) == {"total": 4}
