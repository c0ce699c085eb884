"""What a worker reports of its tasks in short texts: tracebacks, values, signatures."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from minutebook.error_text import (
    LONGEST_LINE,
    LONGEST_VALUE,
    MOST_LINES,
    MOST_TEXT,
    signatures_of,
    traceback_of,
    value_of,
)
from minutebook.followed import FollowedOperation


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


ODD = Odd()


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
    [(None, None), (0, "0"), (ODD, None), ("x" * 9_000, None), ([[[[[[1]]]]]], "[[[[[...]]]]]")],
)
def test_a_value_is_shown_in_short(returned: object, shown: str | None) -> None:
    text = value_of(returned)

    assert text == shown or (shown is None and text is not None and len(text) <= LONGEST_VALUE)


class UnreadablePlan:
    __signature__ = "none"

    def __call__(self) -> None: ...


def plain(city: str, limit: int = 5) -> None: ...
def named(*, dry_run: bool = False, **rest: Any) -> None: ...
def listed(first: int, *rest: int, last: int) -> None: ...
def placed(a: int, /, b: int) -> None: ...
def hidden(password: str = "hunter2", when: Any = ODD, text: str = "x" * 99) -> None: ...


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (plain, ["city", "limit=5"]),
        (named, ["*", "dry_run=False", "**rest"]),
        (listed, ["first", "*rest", "last"]),
        (placed, ["a", "/", "b"]),
        (hidden, ["password=…", "when=…", f"text='{'x' * 38}…"]),
    ],
)
def test_a_signature_is_said_in_short_texts(run: Any, expected: list[str]) -> None:
    assert signatures_of({"t": SimpleNamespace(run=run)}) == {"t": expected}


@pytest.mark.parametrize(
    "default",
    [
        "amqp://user:secret@h",
        "postgresql://me:a/b@c@db/shop?connect_timeout=" + "9" * 50,
        "a\nhttps://me:x\ny@h",
        "host=db user=me password=sesame",
        "{'api_token': 'sesame'}",
    ],
)
def test_a_default_with_credentials_is_hidden(default: str) -> None:
    def run(x: int, dsn: str = default) -> None: ...

    assert signatures_of({"t": SimpleNamespace(run=run)}) == {"t": ["x", "dsn=…"]}


@pytest.mark.parametrize("default", ["https://example.com/x", "me@example.com", "the password"])
def test_a_default_without_credentials_is_said(default: str) -> None:
    def run(text: str = default) -> None: ...

    assert signatures_of({"t": SimpleNamespace(run=run)}) == {"t": [f"text={default!r}"]}


def test_what_has_no_signature_or_a_long_one_is_left_out() -> None:
    long = eval(f"lambda {', '.join(f'p{n}' for n in range(31))}: None")
    tasks = {"broken": UnreadablePlan(), "long": long, "short": plain}

    found = signatures_of({name: SimpleNamespace(run=run) for name, run in tasks.items()})

    assert found == {"short": ["city", "limit=5"]}


def test_all_signatures_together_are_bounded() -> None:
    tasks = {f"shop.tasks.number_{number:05}": SimpleNamespace(run=plain) for number in range(5000)}

    found = signatures_of(tasks)

    assert sum(len(name) + sum(map(len, one)) for name, one in found.items()) <= MOST_TEXT
    assert len(found) > 400
