"""The step `publish`: moves production to staging."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainValidator
from pydantic_core import InitErrorDetails

from minutebook.steps import StepResult, step
from models.document import Document
from models.parsing import Reading
from models.problems import line_error
from models.values import AS_LIST, NAMES, Flag, NameOf, parse_flag
from tasks.step_context import WorkContext

EVERYTHING = {"data": True, "design": True, "permissions": True}


def _selection(value: object) -> bool | tuple[str, ...]:
    """Return true, false or the names; a string is a boolean, never a name."""
    if isinstance(value, list | tuple):
        return NAMES.validate_python(value) or False
    try:
        return parse_flag(value)
    except ValueError:
        raise ValueError('write true, false or a list of names: ["a", "b"]') from None


def _is_off(value: object) -> bool:
    return value in (False, "", []) or str(value).lower() == "false"


Selection = Annotated[bool | tuple[str, ...], PlainValidator(_selection), AS_LIST]


class PublishParameters(Document):
    """What moves from staging to production: all of a kind (true), nothing, or named entries.

    `notify` sends the "new data available" mail: by default on manual runs, not on scheduled ones.
    After a refresh that ended partial the step is left out, unless `after_partial` is true.
    """

    data: Annotated[Selection, NameOf("domains", "domain")] = False
    design: Annotated[Selection, NameOf("design", "design document")] = False
    permissions: Annotated[Selection, NameOf("permissions", "permissions document")] = False
    notify: Flag | None = None
    after_partial: Flag = False

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the fault of publishing nothing."""
        if all(_is_off(raw.get(kind, False)) for kind in EVERYTHING):
            remedy = 'publishes nothing; write true, or set "data", "design" or "permissions"'
            return [line_error((), dict(raw), remedy)]
        return []


@step(
    "publish",
    parameters=PublishParameters,
    heavy=True,
    order=20,
    if_true=EVERYTHING,
    builds_on="refresh",
    example={"data": True},
)
def run(context: WorkContext) -> StepResult:
    from data.steps.publish.work import run as work

    return work(context)
