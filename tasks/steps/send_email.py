"""send_email: a stored template, one message to each recipient."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

from mail.message import Content
from mail.templates import InvalidTemplate, MailTemplate, check, render
from minutehand.steps import Recipient, StepFailed, StepResult
from models.parameters import SendEmailParameters
from models.problems import unknown_name
from models.store import small_apps
from runtime.database import reading
from tasks.context import WorkContext
from tasks.delivery import deliver

# What a template may read: `mail.templates.check` tells at save which other names one wants.
KNOWN_NAMES = frozenset({"recipient", "small_app", "occurrence_at", "date", "time", "operation_id"})


def run(context: WorkContext) -> StepResult:
    """Send the template to the recipients who have not had it from this operation."""
    parameters = cast(SendEmailParameters, context.parameters)
    template = _template(context, parameters.template)
    shared = _shared_values(context)

    def compose(recipient: Recipient) -> Content:
        return render(template, {**shared, "recipient": _shown(recipient)})

    return deliver(context, "send_email", compose)


def _template(context: WorkContext, name: str) -> MailTemplate:
    with reading(context.engine) as connection:
        stored = small_apps.templates_of(connection, context.small_app.id)
    if name not in stored:
        raise StepFailed(
            f"template {name!r} {unknown_name('template', name, stored)}", permanent=True
        )
    template = MailTemplate(name, **stored[name])
    try:
        check(template)
    except InvalidTemplate as error:
        raise StepFailed(str(error), permanent=True) from None
    return template


def _shared_values(context: WorkContext) -> Mapping[str, Any]:
    local: datetime = context.occurrence_at.astimezone(ZoneInfo(context.small_app.zone))
    return {
        "small_app": {
            "name": context.small_app.name,
            "zone": context.small_app.zone,
            "settings": context.small_app.settings,
        },
        "occurrence_at": context.occurrence_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "date": local.strftime("%Y-%m-%d"),
        "time": local.strftime("%H:%M"),
        "operation_id": str(context.operation_id),
    }


def _shown(recipient: Recipient) -> Mapping[str, str]:
    return {
        "id": recipient.id,
        "address": recipient.address or "",
        "name": recipient.name or recipient.id,
    }
