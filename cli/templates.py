"""`minutehand template …`: preview and test the mails of a small app."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import existing
from cli.render import show
from cli.tree import group
from models.errors import Refused
from views import templates

commands = group("Mail templates of a small app.")

Name = Annotated[str, typer.Argument(help="The template's name.", metavar="NAME")]
User = Annotated[str | None, typer.Option(help="User to show (default: sample values).")]


@commands.command("list")
def list_templates(context: typer.Context) -> None:
    """List the templates of the small app and the number of their problems."""
    show(context, existing(context).ask(templates.list_templates))


@commands.command("preview")
def preview(
    context: typer.Context,
    name: Name,
    *,
    user: User = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the HTML part to this file; - is stdout.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print only the text part.")] = False,
) -> None:
    """Show a template with a user's values. Nothing is sent or stored."""
    opened = existing(context)
    if html is not None and text:
        raise Refused("--html and --text cannot be combined; choose one")
    made = opened.ask(templates.preview, name, user)
    if html is None:
        show(context, made, text_alone=text)
    elif str(html) == "-":
        sys.stdout.write(templates.html_of(made))
    else:
        show(context, templates.write_html(made, html))


@commands.command("send-test")
def send_test(
    context: typer.Context,
    name: Name,
    *,
    to: Annotated[str, typer.Option(help="The recipient's address.")],
    user: User = None,
) -> None:
    """Send a template to one address as a test mail, without an operation."""
    show(context, existing(context).ask(templates.send_test, name, to, user))
