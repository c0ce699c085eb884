"""The step `command`: runs a program, or a line of shell, on the worker's machine."""

import re
from collections.abc import Mapping
from json import dumps
from posixpath import isabs, join, normpath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import InitErrorDetails

from minutebook.steps import StepResult, step
from models.document import Document
from models.parsing import Reading
from models.problems import line_error
from models.values import AS_LIST, Text, parse_list
from models.values.references import is_reference, parse_reference
from runtime.sections.commands import SHELL, with_variables
from tasks.step_context import WorkContext

STEP = "command"
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
OWN_PREFIX = "MINUTEBOOK_"


def _program(run: tuple[str, ...]) -> tuple[str, ...]:
    if not run or not run[0].strip():
        raise ValueError('is empty; write the program and its arguments: ["./backup.sh", "--full"]')
    if run[0].endswith(")"):
        raise ValueError("ends with a bracket, as variables do in SCHED_COMMANDS; rename it")
    if len(run) == 1 and " " in run[0]:
        raise ValueError(f'is one text; write {dumps(run[0].split())}, or use "shell"')
    return run


def _words(value: object) -> object:
    if isinstance(value, str) and value.strip():
        raise ValueError(f'write a list: {dumps(value.split())}, or use "shell"')
    return parse_list(value)


def _folder(path: str) -> str:
    if not isabs(path):
        raise ValueError("is not a whole path; write one that begins with /")
    return normpath(path)


def _variables(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a variable; write letters, digits and _")
        if name.startswith(OWN_PREFIX):
            raise ValueError(f"{name} is a variable of Minutebook's own; rename it")
        if is_reference(value):
            parse_reference(value)
    return env


class CommandParameters(Document):
    """A program with its arguments, or a line of shell, and what it gets."""

    example = '{"run": ["/usr/bin/true"]}'

    run: Annotated[
        tuple[Text, ...] | None, BeforeValidator(_words), AfterValidator(_program), AS_LIST
    ] = None
    shell: Text | None = None
    cwd: Annotated[Text, AfterValidator(_folder)] | None = None
    env: Annotated[dict[str, Text], AfterValidator(_variables)] = Field(default_factory=dict)
    input: Text | None = None

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the faults of not exactly one command."""
        if "shell" in raw and not str(raw["shell"]).strip():
            return [line_error(("shell",), raw["shell"], "is empty; write the line to run")]
        if "run" in raw and "shell" in raw:
            return [
                line_error(
                    ("shell",), raw["shell"], 'cannot be combined with "run"; write one of them'
                )
            ]
        if "run" not in raw and "shell" not in raw:
            remedy = 'write "run": ["program", "argument"], or "shell": "a line of shell"'
            return [line_error((), dict(raw), remedy)]
        return []

    @property
    def program(self) -> str:
        """What runs, as it is allowed: a path, a name in PATH, or `shell`."""
        if self.run is None:
            return SHELL
        name = self.run[0]
        if "/" not in name:
            return name
        path = normpath(join(self.cwd or "", name))
        return path if isabs(path) else f"./{path}"

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that have to be allowed; a line of shell may set any of them itself."""
        return () if self.run is None else tuple(self.env)


def program(parameters: Mapping[str, Any]) -> str:
    """Return the program with its variables, as SCHED_COMMANDS allows it."""
    read = CommandParameters.model_validate(parameters)
    return with_variables(read.program, read.variables)


@step(
    STEP,
    parameters=CommandParameters,
    order=5,
    program=program,
    example={"run": ["./backup.sh"]},
)
def run(context: WorkContext) -> StepResult:
    from tasks.steps.command.work import run as work

    return work(context)
