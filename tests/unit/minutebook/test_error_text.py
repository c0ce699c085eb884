from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from minutebook.error_text import LONGEST_LINE, LONGEST_VALUE, MOST_LINES, traceback_of, value_of
from minutebook.followed import FollowedOperation


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


def raised(call: Callable[[], object]) -> BaseException:
    """Return what a call raises, with the frames from the call on."""
    with pytest.raises(ValueError, match=r"\w") as caught:
        call()
    its = caught.value.__traceback__
    assert its is not None
    return caught.value.with_traceback(its.tb_next)


def no_printer() -> None:
    raise ValueError("no printer")


def test_a_traceback_begins_at_the_task() -> None:
    held: Any = SimpleNamespace(held=nullcontext, interruptible=nullcontext)

    lines = traceback_of(raised(partial(FollowedOperation.run, held, no_printer)))

    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: no printer"
    assert "in no_printer" in lines[1]


def test_a_traceback_is_short() -> None:
    def deep(number: int) -> None:
        if number == 0:
            raise ValueError("x" * 10_000)
        deep(number - 1)

    lines = traceback_of(raised(lambda: deep(300)))

    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= LONGEST_LINE


@pytest.mark.parametrize(
    ("returned", "shown"),
    [
        (None, None),
        (0, "0"),
        (Odd(), None),
        ("x" * 9_000, None),
        ([[[[[[1]]]]]], "[[[[[...]]]]]"),
    ],
)
def test_a_value_is_shown_in_short(returned: object, shown: str | None) -> None:
    text = value_of(returned)

    assert text == shown or (shown is None and text is not None and len(text) <= LONGEST_VALUE)
