"""The step `send_execsum`: mails the executive summary."""

from minutebook.steps import StepResult, step
from models.document import NoParameters
from tasks.step_context import WorkContext


@step("send_execsum", parameters=NoParameters, sends=True, order=40, example=True)
def run(context: WorkContext) -> StepResult:
    from data.steps.send_execsum.work import run as work

    return work(context)
