"""`minutehand step …`: the steps that actions may name, and what could not be loaded."""

from typing import Any

import typer
from pydantic import BaseModel

from cli.invocation import of
from cli.output import print_error, print_json, print_line, print_table
from cli.tree import group
from minutehand.steps import registered_steps
from models.action.steps import BUILT_IN_STEPS
from models.problems import known_keys
from models.step_spec import StepSpec
from tasks.registry import Registry

commands = group("Steps: what actions can do.")

COLUMNS = {"name": "NAME", "weight": "WEIGHT", "keys": "PARAMETERS", "from": "FROM"}


@commands.command("list")
def list_steps(context: typer.Context) -> None:
    """List the steps, ours and those of one's own, and what could not be loaded."""
    invocation = of(context)
    registry = invocation.registry
    shown = [_built_in(spec) for spec in BUILT_IN_STEPS.values()]
    shown += [_own(spec, registry) for spec in registry.user_specs().values()]
    if invocation.as_json:
        failures = [{"module": name, "error": text} for name, text in registry.failed.items()]
        print_json({"steps": shown, "failures": failures})
        return
    print_table([one | {"keys": ", ".join(one["keys"])} for one in shown], COLUMNS)
    for told in registry.failures:
        print_error(told)
    if registry.failures:
        print_line("minutehand doctor says what the workers could not load")


def _built_in(spec: StepSpec) -> dict[str, Any]:
    return {**_described(spec), "module": "minutehand", "from": "Minutehand"}


def _own(spec: StepSpec, registry: Registry) -> dict[str, Any]:
    by_step = {name: one.origin.told for one in registry.loaded for name in one.steps}
    module = registered_steps()[spec.name].function.__module__
    return {**_described(spec), "module": module, "from": by_step.get(spec.name, module)}


def _described(spec: StepSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "weight": "heavy" if spec.is_heavy else "quick",
        "repeatable": spec.repeatable,
        "sends": spec.needs_recipients,
        "keys": list(known_keys(spec.parameters)),
        "parameters": _schema(spec.parameters),
    }


def _schema(parameters: type[BaseModel]) -> dict[str, Any] | None:
    """Return the JSON schema of parameters, None for those that have none, or that are broken."""
    try:
        return parameters.model_json_schema()
    except Exception:  # a model of somebody else's must not hide the other steps
        return None
