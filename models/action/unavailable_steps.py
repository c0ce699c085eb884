"""Steps that the grammar knows but this release cannot run yet."""

from collections.abc import Mapping

from models.errors import Problem
from models.values import flag_of

LATER_STEPS = ("job",)
STEP_REMEDY = "this step is not available in this release; remove it or set it to false"


def not_available(document: object) -> list[Problem]:
    """Return one problem for each step of a document that this release cannot run."""
    if not isinstance(document, Mapping):
        return []
    operations = document.get("operations")
    steps = operations if isinstance(operations, Mapping) else {}
    wanted = [name for name in LATER_STEPS if flag_of(steps.get(name, False)) is not False]
    return [Problem(f"operations.{name}", steps[name], STEP_REMEDY) for name in wanted]


def without_the_unavailable(document: object, problems: list[Problem]) -> list[Problem]:
    """Return `problems`, with one for each unavailable step in place of the faults inside it."""
    later = not_available(document)
    hidden = tuple(problem.path for problem in later)
    kept = [p for p in problems if not any(_is_within(p.path, path) for path in hidden)]
    return kept + later


def _is_within(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))
