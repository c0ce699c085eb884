"""send_email: a stored template, one message to each recipient."""

from typing import cast

from mail.checks import problems_of_template
from mail.message import Content, unsubscribe_url
from mail.templates import MailTemplate, render
from mail.values import Occasion, values_of
from minutehand.steps import Recipient, StepFailed, StepResult
from models.parameters import SendEmailParameters
from models.problems import unknown_name
from models.store import small_apps
from runtime.database import reading
from tasks.context import WorkContext
from tasks.delivery import deliver


def run(context: WorkContext) -> StepResult:
    """Send the template to the recipients who have not had it from this operation."""
    parameters = cast(SendEmailParameters, context.parameters)
    template = _template(context, parameters.template)
    occasion = _occasion(context)
    app, way_out = context.small_app.name, context.settings.mail.unsubscribe

    def compose(recipient: Recipient) -> Content:
        url = unsubscribe_url(way_out, recipient.id, app)
        return render(template, values_of(occasion, recipient, url))

    return deliver(context, "send_email", compose)


def _template(context: WorkContext, name: str) -> MailTemplate:
    with reading(context.engine) as connection:
        stored = small_apps.templates_of(connection, context.small_app.id)
    if name not in stored:
        raise StepFailed(
            f"template {name!r} {unknown_name('template', name, stored)}", permanent=True
        )
    template = MailTemplate(name, **stored[name])
    problems = problems_of_template(template, context.small_app.settings)
    if problems:
        raise StepFailed("; ".join(map(str, problems)), permanent=True)
    return template


def _occasion(context: WorkContext) -> Occasion:
    app = context.small_app
    with reading(context.engine) as connection:
        title = small_apps.document_of(connection, app.id).get("title")
    at, id = context.occurrence_at, str(context.operation_id)
    return Occasion(app.name, title or app.name, app.zone, at, id, app.settings)
