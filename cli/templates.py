"""`minutehand template …`: the mails of a small app, before they are sent to anybody."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import existing
from cli.render import show
from cli.tree import group
from models.errors import Refused
from views import templates

commands = group("Templates of mails, as a small app has them.")

Name = Annotated[str, typer.Argument(help="The template's name.", metavar="NAME")]
User = Annotated[str | None, typer.Option(help="Whose values (default: sample ones).")]


@commands.command("list")
def list_templates(context: typer.Context) -> None:
    """List the templates of the small app, and whether they can be used."""
    show(context, templates.list_templates(existing(context)))


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
    opened = existing(context)
    if html is not None and text:
        raise Refused("--html and --text exclude each other; choose one")
    made = templates.preview(opened, name, user)
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
    to: Annotated[str, typer.Option(help="The address that gets it.")],
    user: User = None,
) -> None:
    """Send a template to one address, as a mail of its own that no operation knows."""
    show(context, templates.send_test(existing(context), name, to, user))
