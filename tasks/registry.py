"""The steps that a process knows: Minutebook's own, and those of users."""

from collections.abc import Collection
from functools import lru_cache
from threading import Lock
from typing import Any

from minutebook import readers, steps
from minutebook.steps import StepFunction, StepSpec, registered_steps
from models.errors import UnknownStep
from models.parsing import KnownSteps
from runtime.extras import HOW_TO_INSTALL, extras, missing_here
from runtime.logs.events import EventLog
from tasks.built_in import built_in_steps
from tasks.loading import WITHIN_S, Origin, load, origins_of

logger = EventLog("minutebook.steps")

# Where modules register steps and readers by name; entries of a failed module are removed.
SHELVES: tuple[dict[str, Any], ...] = (steps._registered, readers._registered)


class Registry:
    """The steps this process knows; a failed import affects only the actions that use it.

    `failed` maps each failed module to its error; what it registered before is removed. `sources`
    maps the steps of users to what named their modules.
    """

    def __init__(
        self, modules: tuple[str, ...] = (), *, packages: bool = False, within_s: float = WITHIN_S
    ) -> None:
        self.failed: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        for origin in origins_of(modules, packages=packages):
            self._load(origin, within_s)

    def _load(self, origin: Origin, within_s: float) -> None:
        before = registered_steps()
        kept = [dict(shelf) for shelf in SHELVES]
        error = load(origin, within_s) or self._clash(before)
        if error is None:
            new = registered_steps().keys() - before.keys()
            self.sources |= dict.fromkeys(new, origin.source)
            return
        for shelf, earlier in zip(SHELVES, kept, strict=True):
            shelf.clear()
            shelf.update(earlier)
        self.failed[origin.module] = error
        logger.error(
            "steps_not_imported", "{source} cannot be imported: {error}", origin.source, error
        )

    def _clash(self, before: dict[str, StepSpec]) -> str | None:
        """Return the error in the names of the steps that were just registered."""
        for name in registered_steps():
            if name in built_in_steps() and name not in before:
                return f"step {name!r} is one of Minutebook's own; give it another name"
        return None

    @property
    def failures(self) -> tuple[str, ...]:
        """The modules that failed to import and why, one sentence each."""
        return tuple(failure_of(module, error) for module, error in self.failed.items())

    @property
    def steps(self) -> KnownSteps:
        """All steps by name, with the failed modules; a user's cannot replace a built-in one."""
        return self.steps_beside(extras())

    def steps_beside(self, extras: Collection[str]) -> KnownSteps:
        """Return all steps for a process that saves actions, where the workers have `extras`."""
        known = {**registered_steps(), **built_in_steps()}
        return KnownSteps(known, self.failures, missing_here(extras))

    def function(self, name: str) -> StepFunction:
        """Return the function that runs the step; raises UnknownStep."""
        step = self.steps.get(name)
        if step is not None and step.extra in missing_here():
            raise UnknownStep(
                f"the step {name!r} needs the extra {step.extra!r}, which this worker lacks; "
                f"add it there as {HOW_TO_INSTALL} shows"
            )
        if step is not None and step.function is not None:
            return step.function
        hint = "".join(f"; {failure}" for failure in self.failures)
        raise UnknownStep(f"this worker does not know the step {name!r}{hint}")


def failure_of(module: str, error: str) -> str:
    """Return in a sentence that a module failed to import, and why."""
    return f"module {module} failed to import: {error}"


_loading = Lock()


def registry_of(modules: tuple[str, ...]) -> Registry:
    """Return this process's registry, loaded at the first call."""
    with _loading:
        return _registry(modules)


@lru_cache(maxsize=1)
def _registry(modules: tuple[str, ...]) -> Registry:
    return Registry(modules, packages=True)
