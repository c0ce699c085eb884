"""send_email: a stored template, one message to each recipient."""

from typing import cast

from data.mail.templated import deliver_template
from data.mail.templates import MailTemplate
from data.steps.send_email import SendEmailParameters
from data.store.small_apps import templates_of
from minutebook.steps import StepFailed, StepResult
from models.hints import unknown_name
from models.store import tenants
from runtime.database import reading
from tasks.step_context import WorkContext


def run(context: WorkContext) -> StepResult:
    """Send the template to the recipients that have not had it from this operation."""
    name, app = cast(SendEmailParameters, context.parameters).template, context.small_app
    with reading(context.engine) as connection:
        stored = templates_of(connection, app.id)
        title = tenants.document_of(connection, app.id).get("title")
    if name not in stored:
        raise StepFailed(
            f"template {name!r} {unknown_name('template', name, stored)}", permanent=True
        )
    template = MailTemplate(name, **stored[name])
    return deliver_template(context, "send_email", template, title or app.name, {})
