"""What is known of a step before it runs, built-in or user-defined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

USER_ORDER = 1_000


@dataclass(frozen=True, slots=True)
class StepSpec:
    """A step that actions may name.

    `is_heavy` sends the action to the heavy workers; `repeatable=False` fails an operation whose
    worker was lost in this step; `needs_recipients` requires recipients at save; `alone` allows no
    other step beside it. Steps run by `order`, those of equal order as in the document. `if_true`
    holds the parameters that a bare `true` stands for.
    """

    name: str
    parameters: type[BaseModel]
    is_heavy: bool = False
    repeatable: bool = True
    needs_recipients: bool = False
    alone: bool = False
    order: int = USER_ORDER
    if_true: Mapping[str, object] = field(default_factory=dict)


class KnownSteps(dict[str, StepSpec]):
    """The user-defined steps of a process by name.

    `failures` holds one sentence for each module that could not be loaded.
    """

    def __init__(self, specs: Mapping[str, StepSpec], failures: Sequence[str] = ()) -> None:
        super().__init__(specs)
        self.failures = tuple(failures)


def why_unknown(steps: Mapping[str, StepSpec]) -> str:
    """Return the text to add to "is not known": the modules that failed to load."""
    failures = steps.failures if isinstance(steps, KnownSteps) else ()
    return "".join(f"; {failure}" for failure in failures)
