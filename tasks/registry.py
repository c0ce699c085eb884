"""The steps that a process knows: Minutebook's own, and those of users."""

import importlib
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from threading import Lock
from typing import Any

from minutebook import readers, steps
from minutebook.error_text import text_of
from minutebook.steps import StepFunction, registered_steps
from models.errors import UnknownStep
from models.parsing import KnownSteps
from runtime.extras import HOW_TO_INSTALL, extras, missing_here
from runtime.logs.events import EventLog
from tasks.built_in import built_in_steps

logger = EventLog("minutebook.steps")

GROUP = "minutebook.steps"
LONGEST_ERROR = 1_000
OWN_NAMES = {
    "broker", "cli", "cron", "data", "interop", "migrations", "minutebook", "models", "processes",
    "runtime", "scheduler", "scheduler_server", "services", "tasks", "web",
}  # fmt: skip

# Where modules register steps and readers by name; entries of a failed module are removed.
SHELVES: tuple[dict[str, Any], ...] = (steps._registered, readers._registered)


class Registry:
    """The steps this process knows; a failed import affects only the actions that use it.

    `failed` maps each failed module to its error; what it registered before is removed. `sources`
    maps the steps of users to what named their modules.
    """

    def __init__(self, modules: tuple[str, ...] = (), *, packages: bool = False) -> None:
        self.failed: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        for module, source in modules_of(modules, packages=packages).items():
            self._load(module, source)

    def _load(self, module: str, source: str) -> None:
        before = registered_steps()
        kept = [dict(shelf) for shelf in SHELVES]
        try:
            with _confined():
                _import(module)
            new = registered_steps().keys() - before.keys()
            for name in new & built_in_steps().keys():
                raise ValueError(f"step {name!r} is one of Minutebook's own; give it another name")
        except (Exception, SystemExit) as error:  # a module that exits is as broken
            for shelf, earlier in zip(SHELVES, kept, strict=True):
                shelf.clear()
                shelf.update(earlier)
            text = self.failed[module] = text_of(error)[:LONGEST_ERROR]
            logger.error("steps_not_imported", "{source} cannot be imported: {error}", source, text)
        else:
            self.sources |= dict.fromkeys(new, source)

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


def modules_of(named: Sequence[str], *, packages: bool) -> dict[str, str]:
    """Return the modules to load, each with what names it.

    Those of the setting come first, then those of installed packages, by the packages' names, so
    that all processes agree.
    """
    found = {module: f"SCHED_STEP_MODULES {module}" for module in named}
    points = entry_points(group=GROUP) if packages else ()
    for point in sorted(points, key=lambda one: (_package_of(one), one.name)):
        source = f"entry point {point.name!r} of {_package_of(point)}"
        found.setdefault(point.value.partition(":")[0].strip(), source)
    return found


def _package_of(point: EntryPoint) -> str:
    try:
        return f"{point.dist.name} {point.dist.version}" if point.dist else "a package"
    except Exception:  # a broken package affects only the actions that use it
        return "a package"


def _import(module: str) -> None:
    top = module.partition(".")[0]
    if top in OWN_NAMES:
        raise ImportError(f"Minutebook has a package {top!r} of its own; give yours another name")
    importlib.import_module(module)


@contextmanager
def _confined() -> Iterator[None]:
    """Keep this process's standard output, and the order of its module path."""
    path = list(sys.path)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.path[:] = [*path, *(one for one in sys.path if one not in path)]


_loading = Lock()


def registry_of(modules: tuple[str, ...]) -> Registry:
    """Return this process's registry, loaded at the first call."""
    with _loading:
        return _registry(modules)


@lru_cache(maxsize=1)
def _registry(modules: tuple[str, ...]) -> Registry:
    return Registry(modules, packages=True)
