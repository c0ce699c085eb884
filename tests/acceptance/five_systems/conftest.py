"""A table for each system, printed when its test is over: run with `-s` to read it."""

from collections.abc import Iterator

import pytest

from tests.acceptance.five_systems.table import Table


@pytest.fixture
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """The table of the system that the test's module names in its first line."""
    told = Table(request.module.__doc__.splitlines()[0].rstrip("."))
    yield told
    print(told.text())  # noqa: T201 - what `-s` is for
