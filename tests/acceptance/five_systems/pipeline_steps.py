"""A step of a pipeline, as its owner would bring it along: loaded by SCHED_STEP_MODULES."""

from pathlib import Path

from pydantic import BaseModel

import minutebook
from runtime.clock import wait_for


class Parameters(BaseModel):
    """The file that the import waits for."""

    until: str


@minutebook.step("match_import", heavy=True, parameters=Parameters)
def match_import(context: minutebook.StepContext) -> None:
    """Match, which nobody notices; then import, which covers the pages."""
    assert isinstance(context.parameters, Parameters)
    context.progress(phase="matching")
    context.progress(phase="import", blocking=True)
    if not wait_for(Path(context.parameters.until).exists, 120):
        raise minutebook.StepFailed("nobody let it go on", permanent=True)
