from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from minutebook.readers import _registered, reader, registered_readers

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
