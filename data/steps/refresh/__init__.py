"""The step `refresh`: brings staging up to date with the sources."""

import json
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator

from minutebook.steps import StepResult, step
from models.document import Document
from models.values import AS_LIST, NAMES, Flag, NameOf, one_of
from tasks.step_context import WorkContext


def _domains(value: object) -> str | tuple[str, ...]:
    if value == "all":
        return "all"
    if isinstance(value, str):
        raise ValueError(f'write "all" or a list of names: [{json.dumps(value[:60])}]')
    if value == []:
        raise ValueError('names no domain; write "all" or a list of names')
    return NAMES.validate_python(value)


Domains = Annotated[str | tuple[str, ...], PlainValidator(_domains), AS_LIST]


class RefreshParameters(Document):
    """The domains to refresh, and from where.

    `include_new_domains` also refreshes domains created after the action was saved: by default with
    "all", and not with names. `force` rewrites a domain whose source has not changed.
    """

    domains: Annotated[Domains, NameOf("domains", "domain")] = "all"
    force: Flag = False
    include_new_domains: Flag | None = None
    from_: Annotated[
        Literal["source", "downloaded"], BeforeValidator(one_of("source", "downloaded"))
    ] = Field("source", alias="from")

    @property
    def takes_new_domains(self) -> bool:
        """Whether domains created after the action was saved are refreshed too."""
        if self.include_new_domains is None:
            return self.domains == "all"
        return self.include_new_domains


@step("refresh", parameters=RefreshParameters, heavy=True, order=10, extra="data", example=True)
def run(context: WorkContext) -> StepResult:
    from data.steps.refresh.work import run as work

    return work(context)
