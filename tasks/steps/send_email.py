"""send_email: a stored template, one message to each recipient."""

from typing import cast

from mail.templates import MailTemplate
from minutehand.steps import StepFailed, StepResult
from models.parameters import SendEmailParameters
from models.problems import unknown_name
from models.store import small_apps
from runtime.database import reading
from tasks.context import WorkContext
from tasks.templated import deliver_template


def run(context: WorkContext) -> StepResult:
    """Send the template to the recipients who have not had it from this operation."""
    name, app = cast(SendEmailParameters, context.parameters).template, context.small_app
    with reading(context.engine) as connection:
        stored = small_apps.templates_of(connection, app.id)
        title = small_apps.document_of(connection, app.id).get("title")
    if name not in stored:
        raise StepFailed(
            f"template {name!r} {unknown_name('template', name, stored)}", permanent=True
        )
    template = MailTemplate(name, **stored[name])
    return deliver_template(context, "send_email", template, title or app.name, {})
