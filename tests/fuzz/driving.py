"""Hypothesis as the driver of a check: it mutates, and shrinks what fails."""

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz import sources
from tests.fuzz.kept import kept, words
from tests.fuzz.kinds import Kind
from tests.fuzz.mutation import mutated


@dataclass(frozen=True, slots=True)
class Failure:
    given: bytes
    text: str


def failure_of(
    kind: Kind, check: Callable[[bytes], None], *, seed: int, examples: int
) -> Failure | None:
    """Return the first input that fails among `examples` mutations, or None."""
    tried: list[bytes] = []

    def one(given: bytes) -> None:
        tried[:] = [given]
        check(given)

    try:
        _driven(kind, one, seed, examples)
    except Exception as error:  # of any type: the check of unknown code
        # Hypothesis runs the smallest input last.
        return Failure(tried[0], f"{type(error).__name__}: {error}")
    return None


def _driven(kind: Kind, one: Callable[[bytes], None], number: int, examples: int) -> None:
    inputs = mutated(seeds(kind), words(kind.name))
    rules = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    seed(number)(rules(given(inputs)(one)))()


def seeds(kind: Kind) -> list[bytes]:
    """Return what mutation begins with: the kept inputs, and small hostile files for sources."""
    made = sources.seeds() if kind.name == "sources" else []
    return [*kept(kind.name).values(), *made]
