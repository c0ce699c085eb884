"""Templates of mails: whether they can be used, previews, and mails to try them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any
from uuid import uuid4

from pydantic import Field

from data.mail.in_child import problems_of_template, rendered
from data.mail.templates import InvalidTemplate, MailTemplate
from data.mail.values import own_values, sample_of, shared_values
from data.store.small_apps import templates_of
from minutebook.steps import Recipient
from models.errors import Hint, InvalidDocument, NotFound, Refused, SchedulerError
from models.hints import MOST_COMPARED, unknown_name
from models.sql import read_clock
from models.store import tenants
from models.store.people import selection, users
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from models.values import counted
from runtime.database import reading
from services.installation import Installation
from services.lookup import named_elsewhere
from services.verbs import EDIT, READ, Verb
from services.view import Listing, Page, View, first_of
from tasks.bounded.limits import OverLimit
from tasks.outgoing.failures import Undelivered
from tasks.outgoing.mail.message import (
    Content,
    Envelope,
    InvalidAddress,
    build_message,
    parse_address,
)
from tasks.outgoing.mail.transport import open_transport

SAMPLE_RECIPIENT = Recipient("ann@example.com", "ann@example.com", "Ann Example")
SEE = "; see `minutebook template list`"


class TemplateRow(View):
    """A template of a small app."""

    name: str = Field(description="Name of the template.")
    subject: str = Field(description="Its subject, not rendered.")
    parts: tuple[str, ...] = Field(description="`text`, and `html` if it has one.")
    state: str = Field(description="`ok`, or how many problems it has.")


class Templates(Listing[TemplateRow]):
    """The templates of a small app, by name."""


class TemplatePreview(View):
    """A template with the values of a user, or with sample values."""

    template: str = Field(description="Name of the template.")
    to: str | None = Field(description="The user's address; null for a user without one.")
    subject: str = Field(description="The rendered subject.")
    text: str = Field(description="The rendered text part.")
    html: str | None = Field(description="The HTML part; null for a template without one.")


class TriedMail(View):
    """A mail that was sent to try a template."""

    template: str = Field(description="Name of the template.")
    to: str = Field(description="The address it was sent to.")
    message: str = Field(description="What the mail server did.")


@Verb("list_templates", "GET /api/apps/{app}/templates", READ, pages=Templates)
def list_templates(
    installation: Installation,
    limit: int,
    cursor: str | None = None,
    known: Mapping[str, Any] | None = None,
) -> Page[TemplateRow]:
    """List the templates of the small app and the number of their problems.

    `known` are the settings of the app's document, if they
    were read already.
    """
    app_id = installation.small_app.id
    with reading(installation.engine) as connection:
        settings = tenants.settings_of(connection, app_id) if known is None else known
        stored = templates_of(connection, app_id, cursor, limit + 1)
    found = [MailTemplate(name, **parts) for name, parts in stored.items()]
    shown, following = first_of(found, limit, lambda template: template.name)
    return Page[TemplateRow](items=tuple(_row(one, settings) for one in shown), next=following)


def _row(template: MailTemplate, settings: Mapping[str, Any]) -> TemplateRow:
    count = len(problems_of_template(template, settings))
    return TemplateRow(
        name=template.name,
        subject=template.subject,
        parts=("text",) if template.html is None else ("text", "html"),
        state=counted(count, "problem") if count else "ok",
    )


@Verb("preview_template", "GET /api/apps/{app}/templates/{template=name}/preview", READ)
def preview(installation: Installation, name: str, user: str | None = None) -> TemplatePreview:
    """Render a mail template with the values of a user, or with sample values.

    Raises as `_rendered`.
    """
    recipient, content = _rendered(installation, name, user)
    return TemplatePreview(
        template=name,
        to=recipient.address,
        subject=content.subject,
        text=content.text,
        html=content.html,
    )


def _rendered(installation: Installation, name: str, user: str | None) -> tuple[Recipient, Content]:
    """Return the recipient and the template with its values.

    Raises NotFound, or InvalidDocument for the template's problems.
    """
    app = installation.small_app
    with reading(installation.engine) as connection:
        found = templates_of(connection, app.id)
        document, now = tenants.document_of(connection, app.id), read_clock(connection)
    if name not in found:
        raise NotFound(f'template "{name}" {unknown_name("template", name, found, SEE)}')
    template, settings = MailTemplate(name, **found[name]), document.get("settings", {})
    problems = problems_of_template(template, settings)
    if problems:
        raise InvalidDocument(problems)
    recipient = SAMPLE_RECIPIENT if user is None else _recipient(installation, user)
    title, at = document.get("title") or app.name, now.replace(second=0, microsecond=0)
    # Those of a mail of this minute, with the id of an unknown operation.
    shared = shared_values(replace(app, settings=settings), title, at, str(uuid4()))
    try:
        values = {**sample_of(name, settings), **shared}
        content = next(rendered(template, values, [own_values(recipient)]))
    except (InvalidTemplate, OverLimit) as error:
        raise Refused(str(error)) from None
    return recipient, content


def _recipient(installation: Installation, id: str) -> Recipient:
    app_id = installation.small_app.id
    with reading(installation.engine) as connection:
        found = users.find(connection, app_id, id)
        if found is not None:
            return users.as_recipient(found)
        known = selection.first_ids(connection, app_id, MOST_COMPARED)
        elsewhere = named_elsewhere(connection, installation, "user", id)
    raise elsewhere or NotFound(f'user "{id}" {unknown_name("user", id, known)}')


def html_of(made: TemplatePreview) -> str:
    """Return the HTML part; raises Refused if there is none."""
    if made.html is None:
        raise Refused(
            f'template "{made.template}" has no HTML part', Hint("use --text", http="use its text")
        )
    return made.html


@Verb("send_test", "POST /api/apps/{app}/templates/{template=name}:send-test", EDIT)
def send_test(
    installation: Installation,
    name: str,
    to: Annotated[str, Field(description="The recipient's address.")],
    user: Annotated[
        str | None, Field(description="The user to show; sample values without one.")
    ] = None,
) -> TriedMail:
    """Send a template to one address as a test mail, without a run.

    Raises Refused and SchedulerError. It counts towards the small app's messages a minute, and
    stands in the audit trail.
    """
    _, content = _rendered(installation, name, user)
    settings = installation.settings
    with reading(installation.engine) as connection:
        now = read_clock(connection)
    sender = settings.mail.sender
    message_id = f"<test.{uuid4()}@{parse_address(sender).domain}>"
    envelope = Envelope(sender, to, None, message_id, now, settings.mail.reply_to)
    try:
        message = build_message(content, envelope)
        _note_test(installation, name, to)
        with open_transport(settings) as transport:
            transport.send(message)
            return TriedMail(template=name, to=to, message=transport.told(1))
    except InvalidAddress as error:
        raise Refused(str(error)) from None
    except Undelivered as error:
        raise SchedulerError(f"the test mail was not accepted: {error}") from None


def _note_test(installation: Installation, name: str, to: str) -> None:
    """Write a test mail to the audit trail; raises Refused beyond the small app's ceiling.

    Noted before it is sent: a mail may have arrived even if its server's answer did not.
    """
    app, limits = installation.small_app, installation.settings.limits
    with installation.engine.begin() as connection:
        ceilings.check(connection, app.id, Ceiling.MAILS, limits, 1)
        installation.audit(connection, app.id, "template.send_test", {name: {"to": to}})
