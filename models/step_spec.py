"""The steps that a process knows."""

from collections.abc import Mapping, Sequence

from minutehand.steps import StepSpec


class KnownSteps(dict[str, StepSpec]):
    """The steps of a process by name.

    `failures` holds one sentence for each module that could not be loaded.
    """

    def __init__(self, specs: Mapping[str, StepSpec], failures: Sequence[str] = ()) -> None:
        super().__init__(specs)
        self.failures = tuple(failures)


def why_unknown(steps: Mapping[str, StepSpec]) -> str:
    """Return the text to add to "is not known": the modules that failed to load."""
    failures = steps.failures if isinstance(steps, KnownSteps) else ()
    return "".join(f"; {failure}" for failure in failures)
