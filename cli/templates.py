"""`minutehand template …`: the mails of a small app, before anybody gets one."""

from pathlib import Path
from typing import Annotated

import typer

from cli.invocation import existing
from cli.output import print_json, print_line, print_table
from cli.tree import group
from models.errors import Refused

commands = group("Templates of mails, as a small app has them.")

COLUMNS = {"name": "NAME", "subject": "SUBJECT", "parts": "PARTS", "state": "STATE"}

Name = Annotated[str, typer.Argument(help="The template's name.", metavar="NAME")]
User = Annotated[str | None, typer.Option(help="Whose values (default: sample ones).")]


@commands.command("list")
def list_templates(context: typer.Context) -> None:
    """List the templates of the small app, and whether they can be used."""
    from cli import mailing
    from small_apps.mail.templates import MailTemplate

    invocation = existing(context)
    stored = mailing.stored(invocation)
    settings = mailing.settings_of(invocation)
    rows = [mailing.row(MailTemplate(name, **parts), settings) for name, parts in stored.items()]
    if invocation.as_json:
        print_json(rows)
    else:
        print_table([row | {"parts": ", ".join(row["parts"])} for row in rows], COLUMNS)


@commands.command("preview")
def preview(
    context: typer.Context,
    name: Name,
    *,
    user: User = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the HTML part to this file; - is stdout.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the text part alone.")] = False,
) -> None:
    """Show what a template says. Nothing is sent or stored."""
    from cli import mailing

    invocation = existing(context)
    if html is not None and text:
        raise Refused("--html and --text exclude each other; choose one")
    made = mailing.rendered(invocation, name, user)
    if html is not None:
        mailing.write_html(made, html)
    elif text:
        print_line(made.content.text.rstrip("\n"))
    elif invocation.as_json:
        print_json(mailing.as_json(made))
    else:
        mailing.show(made)


@commands.command("send-test")
def send_test(
    context: typer.Context,
    name: Name,
    *,
    to: Annotated[str, typer.Option(help="The address that gets it.")],
    user: User = None,
) -> None:
    """Send a template to one address, as a mail of its own that no operation knows."""
    from cli import mailing

    invocation = existing(context)
    made = mailing.rendered(invocation, name, user)
    told = mailing.send(invocation, made, to)
    if invocation.as_json:
        print_json({"template": name, "to": to, "message": told})
    else:
        print_line(told)
