"""What is known of a step before it runs: the same for built-in steps and for a user's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

USER_ORDER = 1_000


@dataclass(frozen=True, slots=True)
class StepSpec:
    """A step that actions may name.

    `is_heavy` sends the action to the heavy workers; `repeatable=False` fails an operation whose
    worker was lost in this step; `needs_recipients` asks for recipients at save; `alone` allows no
    other step beside it. Steps run by `order`, those of equal order as the document has them.
    `if_true` are the parameters that a bare `true` stands for.
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
    """The steps of one's own that a process knows, by name, and why it does not know others.

    `failures` tell of the modules that could not be loaded, one sentence each.
    """

    def __init__(self, specs: Mapping[str, StepSpec], failures: Sequence[str] = ()) -> None:
        super().__init__(specs)
        self.failures = tuple(failures)


def why_unknown(steps: Mapping[str, StepSpec]) -> str:
    """Return what to add to "is not known": the modules that could not be loaded, if any."""
    failures = steps.failures if isinstance(steps, KnownSteps) else ()
    if failures:
        return "".join(f"; {told}" for told in failures)
    return "; for a step of your own name its module in SCHED_STEP_MODULES"
