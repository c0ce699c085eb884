"""List the steps that actions may name, and the modules that failed to load."""

from functools import lru_cache
from typing import Any

from pydantic import BaseModel, Field

from minutebook.steps import StepSpec
from models.problems import known_keys
from services.installation import Installation
from services.verbs import READ, Verb
from services.view import View
from tasks.registry import Registry, failure_of


class Step(View):
    """A step that actions may name."""

    name: str = Field(description="The key in an action's `operations`.")
    weight: str = Field(description="`heavy` or `quick`: the queue of actions with it.")
    repeatable: bool = Field(description="Whether it may start again after its worker is lost.")
    sends: bool = Field(description="Whether it sends to recipients.")
    keys: tuple[str, ...] = Field(description="Its parameters.")
    parameters: dict[str, Any] | None = Field(description="JSON schema of its parameters.")
    example: Any = Field(description="Parameters to start from.")
    module: str = Field(description="The module that registers it.")
    origin: str = Field(alias="from", description="Where it comes from.")


class StepFailure(View):
    """A step module that failed to load."""

    module: str = Field(description="The module.")
    error: str = Field(description="Why it cannot be imported.")


class Steps(View):
    """All steps that this installation knows."""

    steps: tuple[Step, ...] = Field(description="The steps that actions may name.")
    failures: tuple[StepFailure, ...] = Field(description="Modules that cannot be imported.")

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(failure_of(one.module, one.error) for one in self.failures)


@Verb("list_steps", "GET /api/steps", READ)
def list_steps(installation: Installation) -> Steps:
    """List built-in and user-defined steps, and modules that failed to load."""
    registry = installation.registry
    known = sorted(registry.steps.values(), key=lambda spec: spec.order)
    steps = (_step(spec, registry) for spec in known)
    failed = [StepFailure(module=name, error=why) for name, why in registry.failed.items()]
    return Steps(steps=tuple(steps), failures=tuple(failed))


def _step(spec: StepSpec, registry: Registry) -> Step:
    module = "minutebook" if spec.is_built_in else str(getattr(spec.function, "__module__", ""))
    origin = "Minutebook" if spec.is_built_in else registry.sources.get(spec.name, module)
    return Step(
        name=spec.name,
        weight="heavy" if spec.heavy else "quick",
        repeatable=spec.repeatable,
        sends=spec.sends,
        keys=tuple(known_keys(spec.parameters)),
        parameters=_schema(spec.parameters),
        example=spec.example,
        module=module,
        origin=origin,
    )


# Each form asks for all of them; they are those of the steps loaded by this process.
@lru_cache(maxsize=256)
def _schema(parameters: type[BaseModel]) -> dict[str, Any] | None:
    """Return the JSON schema of parameters; None if there are none or the model is broken."""
    try:
        return parameters.model_json_schema()
    except Exception:  # a user's own model must not hide the other steps
        return None
