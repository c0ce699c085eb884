"""What of an operation that is retried need not be done again."""

from typing import Any

import pytest

from scheduler.on_demand.restart import is_begun

SUCCEEDED, FAILED = {"name": "one", "state": "success"}, {"name": "two", "state": "failed"}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([], False, id="never_begun"),
        pytest.param([FAILED, SUCCEEDED], False, id="first_failed"),
        pytest.param([SUCCEEDED, FAILED], True, id="second_failed"),
        pytest.param([SUCCEEDED, SUCCEEDED], False, id="nothing_would_be_left"),
    ],
)
def test_what_of_an_operation_counts_as_done(steps: list[dict[str, Any]], expected: bool) -> None:
    assert is_begun(steps) is expected
