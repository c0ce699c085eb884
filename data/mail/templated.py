"""Delivery of a template to each recipient of an operation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from data.mail.delivery import deliver
from data.mail.in_child import problems_of_template, rendered
from data.mail.templates import MailTemplate
from data.mail.values import own_values, shared_values
from minutebook.steps import Recipient, StepFailed, StepResult
from tasks.outgoing.mail.message import Content
from tasks.step_context import WorkContext


def deliver_template(
    context: WorkContext, step: str, template: MailTemplate, title: str, values: Mapping[str, Any]
) -> StepResult:
    """Send the template with `values` and those of every mail; return the step's result.

    `title` is the small app's. Raises StepFailed for an invalid template, and as `deliver` does.
    """
    app = context.small_app
    problems = problems_of_template(template, app.settings)
    if problems:
        raise StepFailed("; ".join(map(str, problems)), permanent=True)
    shared = shared_values(app, title, context.occurrence_at, str(context.operation_id))

    def contents(recipients: Sequence[Recipient]) -> Iterator[Content]:
        return rendered(template, {**values, **shared}, [own_values(one) for one in recipients])

    return deliver(context, step, contents)
