"""Previews of templates and mails to try them: what `minutehand template …` does."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from cli.invocation import Invocation
from cli.output import print_line
from minutehand.steps import Recipient
from models.errors import InvalidDocument, NotFound, Refused, SchedulerError
from models.problems import unknown_name
from models.sql import read_clock
from models.store.people import users
from runtime.database import reading
from small_apps.mail.checks import problems_of_template
from small_apps.mail.failures import MailRefused, MailServerFailed
from small_apps.mail.message import (
    Content,
    Envelope,
    InvalidAddress,
    build_message,
    parse_address,
    unsubscribe_url,
)
from small_apps.mail.templates import InvalidTemplate, MailTemplate, render
from small_apps.mail.transport import open_transport
from small_apps.mail.values import Occasion, sample_of, values_of
from small_apps.store import small_apps

SAMPLE_RECIPIENT = Recipient("ann@example.com", "ann@example.com", "Ann Example")


@dataclass(frozen=True)
class Rendered:
    """A template with somebody's values."""

    template: str
    recipient: Recipient
    content: Content
    way_out: str | None


def stored(invocation: Invocation) -> dict[str, dict[str, Any]]:
    """Return the small app's templates by name."""
    app_id = invocation.small_app.id
    with reading(invocation.engine) as connection:
        return small_apps.templates_of(connection, app_id)


def settings_of(invocation: Invocation) -> Mapping[str, Any]:
    """Return the small app's settings."""
    app_id = invocation.small_app.id
    with reading(invocation.engine) as connection:
        return small_apps.settings_of(connection, app_id)


def row(template: MailTemplate, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template's line of the list."""
    count = len(problems_of_template(template, settings))
    return {
        "name": template.name,
        "subject": template.subject,
        "parts": ["text"] if template.html is None else ["text", "html"],
        "state": f"{count} problem{'s' if count > 1 else ''}" if count else "ok",
    }


def rendered(invocation: Invocation, name: str, user: str | None) -> Rendered:
    """Return the template with its values; raises NotFound, or InvalidDocument for its faults."""
    found = stored(invocation)
    if name not in found:
        raise NotFound(f'template "{name}" {unknown_name("template", name, found)}')
    template = MailTemplate(name, **found[name])
    settings = settings_of(invocation)
    problems = problems_of_template(template, settings)
    if problems:
        raise InvalidDocument(problems)
    recipient = SAMPLE_RECIPIENT if user is None else _recipient(invocation, user)
    app = invocation.small_app
    url = unsubscribe_url(invocation.settings.mail.unsubscribe, recipient.id, app.name)
    try:
        occasion = _occasion(invocation, settings)
        values = {**sample_of(name, settings), **values_of(occasion, recipient, url)}
        content = render(template, values)
    except InvalidTemplate as error:
        raise Refused(str(error)) from None
    return Rendered(name, recipient, content, url)


def _recipient(invocation: Invocation, id: str) -> Recipient:
    app_id = invocation.small_app.id
    with reading(invocation.engine) as connection:
        found = users.find(connection, app_id, id)
        if found is not None:
            return users.as_recipient(found)
        known = users.user_ids(connection, app_id)
    raise NotFound(f'user "{id}" {unknown_name("user", id, sorted(known))}')


def _occasion(invocation: Invocation, settings: Mapping[str, Any]) -> Occasion:
    """Return an occasion of this minute; its operation is none that is stored."""
    app = invocation.small_app
    with reading(invocation.engine) as connection:
        title = small_apps.document_of(connection, app.id).get("title") or app.name
        now = read_clock(connection)
    at = now.replace(second=0, microsecond=0)
    return Occasion(app.name, title, app.zone, at, str(uuid4()), settings)


def write_html(made: Rendered, file: Path) -> None:
    """Write the HTML part; raises Refused where there is none."""
    page = made.content.html
    if page is None:
        raise Refused(f'template "{made.template}" has no HTML part; use --text')
    if str(file) == "-":
        sys.stdout.write(page)
        return
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise SchedulerError(f"{file} cannot be written: {error.strerror}") from None
    print_line(f"wrote {len(page):,} characters to {file}")


def show(made: Rendered) -> None:
    """Print to whom, subject and text."""
    shown = made.recipient.address or "nobody: the user has no address"
    print_line(f"To: {shown}")
    print_line(f"Subject: {made.content.subject}")
    if made.way_out:
        print_line(f"List-Unsubscribe: <{made.way_out}>")
    print_line()
    print_line(made.content.text.rstrip("\n"))
    if made.content.html is not None:
        print_line()
        print_line(f"HTML: {len(made.content.html):,} characters; --html FILE writes them")


def as_json(made: Rendered) -> dict[str, Any]:
    """Return the same, and the HTML, for JSON."""
    return {
        "template": made.template,
        "to": made.recipient.address,
        "subject": made.content.subject,
        "text": made.content.text,
        "html": made.content.html,
        "list_unsubscribe": made.way_out,
    }


def send(invocation: Invocation, made: Rendered, to: str) -> str:
    """Send it to one address; return what was done. Raises Refused and SchedulerError."""
    settings = invocation.settings
    with reading(invocation.engine) as connection:
        now = read_clock(connection)
    sender = settings.mail.sender
    message_id = f"<test.{uuid4()}@{parse_address(sender).domain}>"
    envelope = Envelope(sender, to, None, message_id, now, settings.mail.reply_to, made.way_out)
    try:
        message = build_message(made.content, envelope)
        with open_transport(settings) as transport:
            transport.send(message)
            return transport.told(1)
    except InvalidAddress as error:
        raise Refused(f"--to {error}") from None
    except (MailRefused, MailServerFailed) as error:
        raise SchedulerError(f"the test mail was not taken: {error}") from None
