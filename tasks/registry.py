"""Step names to functions: the built-in ones, then a user's own, from packages and settings."""

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

from minutehand import readers, steps
from minutehand.steps import RegisteredStep, StepResult, registered_steps
from models.action.steps import BUILT_IN_STEPS
from models.errors import UnknownStep
from models.step_spec import KnownSteps, StepSpec
from tasks.loading import WITHIN_S, Origin, load, origins_of

logger = logging.getLogger("minutehand.steps")

# Where modules register what they have, by name: what one that fails put there is taken back.
SHELVES: tuple[dict[str, Any], ...] = (steps._registered, readers._registered)
RUNNABLE = ("refresh", "publish", "send_email", "send_execsum", "maintenance")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module that was loaded, and the steps that it registered."""

    origin: Origin
    steps: tuple[str, ...]


class Registry:
    """The steps this process knows; a module that fails to import stops nobody but its users.

    `failed` says of each such module why. What it had registered before it failed is taken back.
    """

    def __init__(
        self, modules: tuple[str, ...] = (), *, packages: bool = False, within_s: float = WITHIN_S
    ) -> None:
        self.failed: dict[str, str] = {}
        self.loaded: list[Loaded] = []
        for origin in origins_of(modules, packages=packages):
            self._load(origin, within_s)

    def _load(self, origin: Origin, within_s: float) -> None:
        before, kept = registered_steps(), [dict(shelf) for shelf in SHELVES]
        error = load(origin, within_s) or self._clash(before)
        if error is None:
            new = tuple(name for name in registered_steps() if name not in before)
            self.loaded.append(Loaded(origin, new))
            return
        for shelf, things in zip(SHELVES, kept, strict=True):
            shelf.clear()
            shelf.update(things)
        self.failed[origin.module] = error
        logger.error("%s cannot be imported: %s", origin.told, error)

    def _clash(self, before: dict[str, RegisteredStep]) -> str | None:
        """Return what is wrong with the names of the steps that were just registered."""
        for name in registered_steps():
            if name in BUILT_IN_STEPS and name not in before:
                return f"step {name!r} is one of Minutehand's own; give it another name"
        return None

    @property
    def failures(self) -> tuple[str, ...]:
        """What could not be loaded and why, one sentence each."""
        return tuple(
            f"module {module} failed to import: {error}" for module, error in self.failed.items()
        )

    def user_specs(self) -> KnownSteps:
        """Return the specs of the registered user steps, by name, with what could not be loaded."""
        specs = {
            name: StepSpec(
                name=name,
                parameters=step.parameters,
                is_heavy=step.heavy,
                repeatable=step.repeatable,
                needs_recipients=step.sends,
            )
            for name, step in registered_steps().items()
            if name not in BUILT_IN_STEPS
        }
        return KnownSteps(specs, self.failures)

    def function(self, name: str) -> Callable[[Any], StepResult | None]:
        """Return the function that runs the step; raises UnknownStep, by name."""
        if name in RUNNABLE:
            run: Callable[[Any], StepResult] = importlib.import_module(
                f"small_apps.steps.{name}"
            ).run
            return run
        own = registered_steps().get(name)
        if own is not None:
            return own.function
        hint = "".join(f"; {told}" for told in self.failures)
        raise UnknownStep(f"this worker does not know the step {name!r}{hint}")


_loading = Lock()


def registry_of(modules: tuple[str, ...]) -> Registry:
    """Return this process's registry: loaded once, whoever asks first."""
    with _loading:
        return _registry(modules)


@lru_cache(maxsize=1)
def _registry(modules: tuple[str, ...]) -> Registry:
    return Registry(modules, packages=True)
