"""The step `maintenance`: prunes history, and what plug-ins keep."""

from minutebook.steps import StepResult, step
from models.document import NoParameters
from tasks.step_context import WorkContext


@step("maintenance", parameters=NoParameters, order=50)
def run(context: WorkContext) -> StepResult:
    from tasks.steps.maintenance.work import run as work

    return work(context)
