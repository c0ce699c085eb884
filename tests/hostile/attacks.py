"""The attacks of hostile editors, and of the servers and files that they name: `make attack`.

docs/dev/attacks.md has them, each with its tests.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.docs.pages import rows_of

TESTS = Path(__file__).parents[1]
# What `make test` and `make test-slow` leave out.
LEFT_OUT = r"pytest\.mark\.(?:storm|matrix)"
LEFT_OUT_FILE = re.compile(rf"^pytestmark = .*{LEFT_OUT}", re.M)
LEFT_OUT_TEST = re.compile(rf"^@{LEFT_OUT}.*?^def test_\w+", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: what is tried, what holds, and the tests that make it."""

    number: str
    tried: str
    holds: str
    tests: tuple[str, ...]


def attacks() -> list[Attack]:
    return [
        Attack(number, tried, holds, named(tests))
        for number, tried, holds, tests in rows_of("dev/attacks")
        if re.match(r"[A-Z]\d", number)
    ]


def named(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`(test_\w+)`", cell))


@dataclass
class Outcomes:
    """How each test ended, by its name: a plug-in of pytest."""

    seen: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a test, or of what it needs."""
        if report.when == "call" or report.outcome != "passed":
            self.seen[report.nodeid.partition("::")[2].partition("[")[0]].add(report.outcome)


def carried_out(
    attacks: Sequence[Attack], seen: Mapping[str, set[str]]
) -> Iterator[tuple[bool, str]]:
    """Yield of each attack whether it was held, and its line."""
    for one in attacks:
        outcomes = set().union(*(seen.get(name, {"not run"}) for name in one.tests))
        is_held = "passed" in outcomes and outcomes <= {"passed", "skipped"}
        how = "held" if is_held else f"BROKEN: {', '.join(sorted(outcomes))}"
        yield is_held, f"{one.number}  {one.tried}: {how}"


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


def main() -> int:
    """Run the tests of all attacks, and print a line for each; return 1 if one was not held."""
    outcomes, known = Outcomes(), places()
    tried = attacks()
    nodes = sorted({known[name] for one in tried for name in one.tests})
    pytest.main(["-q", "--no-header", "-n", "2", "-m", "not storm", *nodes], plugins=[outcomes])
    told = list(carried_out(tried, outcomes.seen))
    for _, line in told:
        print(line)
    broken = sum(not is_held for is_held, _ in told)
    print(f"{len(told)} attacks, {broken} not held")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
