"""What an agent takes from the description of a worker."""

from typing import Any

import pytest

from minutebook.error_text import LONGEST_NAME, MOST_PARAMETERS, MOST_TEXT
from tasks.agent.workers import described_worker

WORKER = {"name": "shop@host", "queues": ["celery"], "pid": 1, "follows": ["t"]}


def taken(signatures: dict[str, Any]) -> Any:
    return described_worker({**WORKER, "signatures": signatures}).signatures


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([], id="none"),
        pytest.param(["a", "/", "b=1", "*", "c='x=y'", "**rest"], id="marks_and_defaults"),
        pytest.param(["*args", "größe"], id="stars_and_letters"),
        pytest.param([f"a{n}" for n in range(MOST_PARAMETERS)] + ["*"], id="as_many_as_may_be"),
        pytest.param([f"**{'a' * LONGEST_NAME}"], id="as_long_as_may_be"),
    ],
)
def test_parameters_are_taken_as_they_are_said(texts: list[str]) -> None:
    assert taken({"t": texts}) == {"t": texts}


@pytest.mark.parametrize(
    "text",
    ["", "**", "***", "***a", "=5", "a b", "1", ".0", "a" * 61, f"a={'x' * 41}"],
)
def test_a_task_with_a_text_that_is_no_parameter_is_left_out(text: str) -> None:
    assert taken({"t": ["city", text], "u": ["limit=5"]}) == {"u": ["limit=5"]}


def test_a_task_with_too_many_parameters_is_left_out() -> None:
    assert taken({"t": [f"a{n}" for n in range(MOST_PARAMETERS + 1)]}) == {}
    assert taken({"t": ["*"] * (MOST_PARAMETERS + 3)}) == {}


def test_the_parameters_of_all_tasks_together_are_bounded() -> None:
    found = taken({f"t{n:05}": ["city"] for n in range(MOST_TEXT)})

    assert 0 < sum(len(name) + sum(map(len, one)) for name, one in found.items()) <= MOST_TEXT
