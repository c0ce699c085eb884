"""Readers and their mappers, as they are registered."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from minutebook.readers import _registered, reader, registered_readers
from minutebook.testing import make_context

Row = dict[str, Any]


@pytest.fixture(autouse=True)
def _own_readers() -> Iterator[None]:
    before = dict(_registered)
    yield
    _registered.clear()
    _registered.update(before)


def mapped(mapper: Callable[..., Any]) -> Any:
    """Register a reader with this mapper; return what it makes of a row."""
    reader("r", mapper=mapper)(lambda _context: [])
    mapper_of = registered_readers()["r"].mapper_of
    assert mapper_of is not None
    return mapper_of(make_context(run_number=7))({"id": 1})


class Mapper:
    def __call__(self, row: Row, context: Any) -> Row:
        return {**row, "run": context.run_number}


def with_option(row: Row, strict: bool = False) -> Row:
    return {**row, "run": strict}


@pytest.mark.parametrize(
    ("mapper", "run"),
    [
        pytest.param(lambda row: {**row, "run": None}, None, id="the_row"),
        pytest.param(lambda row, context: {**row, "run": context.run_number}, 7, id="and_context"),
        pytest.param(Mapper(), 7, id="an_object"),
        pytest.param(partial(with_option, strict=True), True, id="a_partial"),
        pytest.param(with_option, False, id="an_option_is_not_the_context"),
    ],
)
def test_a_mapper_gets_the_arguments_that_it_requires(
    mapper: Callable[..., Any], run: object
) -> None:
    assert mapped(mapper) == {"id": 1, "run": run}


def test_a_mapper_without_a_signature_gets_the_row() -> None:
    assert mapped(dict) == {"id": 1}


@pytest.mark.parametrize("mapper", [lambda: None, lambda _a, _b, _c: None])
def test_another_mapper_is_refused_when_it_is_registered(mapper: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="one argument, the row, or two, the row and the context"):
        mapped(mapper)
