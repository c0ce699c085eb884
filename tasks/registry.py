"""Step names to functions: the built-in ones, then a user's own from `SCHED_STEP_MODULES`."""

import importlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from minutehand.steps import StepResult, registered_steps
from models.errors import UnknownStep
from models.step_spec import StepSpec
from models.steps import BUILT_IN_STEPS

logger = logging.getLogger("minutehand.steps")

ROOT = Path(__file__).resolve().parent.parent
OWN_NAMES = {
    "cli", "cron", "mail", "migrations", "minutehand", "models", "runtime", "scheduler",
    "scheduler_server", "small_apps", "tasks",
}  # fmt: skip
RUNNABLE = ("refresh", "publish", "send_email", "send_execsum", "maintenance")


def _is_ours(module: ModuleType) -> bool:
    """Whether a module is part of this program, which has its name before any other."""
    file = getattr(module, "__file__", None)
    own = (ROOT / module.__name__ / "__init__.py", ROOT / f"{module.__name__}.py")
    return module.__name__ in OWN_NAMES and file is not None and Path(file).resolve() in own


class Registry:
    """The steps this process knows; a module that fails to import stops nobody but its users."""

    def __init__(self, modules: tuple[str, ...] = ()) -> None:
        self.failed: dict[str, str] = {}
        for module in modules:
            self._load(module)

    def _load(self, module: str) -> None:
        try:
            top = module.partition(".")[0]
            if _is_ours(importlib.import_module(top)):
                raise ImportError(
                    f"Minutehand has a package {top!r} of its own; give yours another name"
                )
            importlib.import_module(module)
        except Exception as error:  # a broken package must not stop the worker
            self.failed[module] = f"{type(error).__name__}: {error}"
            logger.error("step module %s cannot be imported: %s", module, self.failed[module])

    def user_specs(self) -> Mapping[str, StepSpec]:
        """Return the specs of the registered user steps, by name."""
        return {
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

    def function(self, name: str) -> Callable[[Any], StepResult | None]:
        """Return the function that runs the step; raises UnknownStep, by name."""
        if name in RUNNABLE:
            run: Callable[[Any], StepResult] = importlib.import_module(f"tasks.steps.{name}").run
            return run
        own = registered_steps().get(name)
        if own is not None:
            return own.function
        hint = "".join(f"; {module}: {error}" for module, error in self.failed.items())
        raise UnknownStep(f"this worker does not know the step {name!r}{hint}")
