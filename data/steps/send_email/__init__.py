"""The step `send_email`: mails a stored template."""

from typing import Annotated

from minutebook.steps import StepResult, step
from models.document import Document
from models.values import Name, NameOf
from tasks.step_context import WorkContext


class SendEmailParameters(Document):
    """The stored template to send to each recipient."""

    template: Annotated[Name, NameOf("templates", "template", is_one=True)]


@step("send_email", parameters=SendEmailParameters, sends=True, order=30, example={"template": ""})
def run(context: WorkContext) -> StepResult:
    from data.steps.send_email.work import run as work

    return work(context)
