"""The attacks of hostile editors, and of the servers and files that they name: `make attack`.

docs/dev/attacks.md has them, each with its tests.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.docs.pages import rows_of

TESTS = Path(__file__).parents[1]
# What `make test` and `make test-slow` leave out.
LEFT_OUT = r"pytest\.mark\.(?:storm|matrix)"
LEFT_OUT_FILE = re.compile(rf"^pytestmark = .*{LEFT_OUT}", re.M)
LEFT_OUT_TEST = re.compile(rf"^@{LEFT_OUT}.*?^def test_\w+", re.M | re.S)


def attacks() -> list[tuple[str, Sequence[str]]]:
    """Return the number and the tests of each row of the page's table."""
    rows = rows_of("dev/attacks")
    return [(number, named(tests)) for number, *_, tests in rows if re.match(r"[A-Z]\d", number)]


def named(cell: str) -> Sequence[str]:
    """Return the tests that a cell of a table names."""
    return re.findall(r"`(test_\w+)`", cell)


def places() -> dict[str, str]:
    """Return the node of each test that CI runs, by its name."""
    return {
        name: f"{file}::{name}"
        for file in sorted(TESTS.rglob("test_*.py"))
        for name in _names_in(file.read_text(encoding="utf-8"))
    }


def _names_in(source: str) -> Sequence[str]:
    if LEFT_OUT_FILE.search(source):
        return ()
    return re.findall(r"^def (test_\w+)", LEFT_OUT_TEST.sub("", source), re.M)


if __name__ == "__main__":
    known = places()
    nodes = sorted({known[name] for _, tests in attacks() for name in tests})
    sys.exit(pytest.main(["-v", "--no-header", "-n", "2", "-m", "not storm", *nodes]))
