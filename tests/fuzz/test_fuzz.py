"""Each kept input passes again, and so does what a second of mutation makes of them.

`make fuzz` mutates for minutes.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.fuzz.driving import failure_of
from tests.fuzz.kept import kept
from tests.fuzz.kinds import KINDS, Kind

Fuzzed = tuple[Kind, Callable[[bytes], None]]


@pytest.fixture(params=KINDS)
def fuzzed(request: pytest.FixtureRequest) -> Iterator[Fuzzed]:
    kind = KINDS[request.param]
    with kind.opened() as check:
        yield kind, check


def test_no_input_breaks_a_promise(fuzzed: Fuzzed) -> None:
    kind, check = fuzzed
    inputs = kept(kind.name)

    assert inputs
    for name, given in inputs.items():
        try:
            check(given)
        except Exception as error:
            error.add_note(f"the kept input {kind.name}/{name}")
            raise
    assert failure_of(kind, check, seed=1, examples=kind.examples) is None
