"""`minutebook template …`: preview and test the mails of a small app."""

from typing import Annotated

import typer

from cli.arguments import existing
from cli.render import print_exactly, show
from cli.tree import group
from cli.verbs import offer
from data.services import summary, templates

commands = group("Mail templates of a small app.")
offer(commands, list=templates.list_templates, send_test=templates.send_test)

Name = Annotated[str, typer.Argument(help="The template's name.", metavar="NAME")]
User = Annotated[str | None, typer.Option(help="User to show (default: sample values).")]

Html = Annotated[bool, typer.Option("--html", help="Print only the HTML part.")]
TextAlone = Annotated[bool, typer.Option("--text", help="Print only the text part.")]


@commands.command("preview")
def preview(
    context: typer.Context,
    name: Name,
    *,
    user: User = None,
    html: Html = False,
    text: TextAlone = False,
) -> None:
    """Show a template with a user's values. Nothing is sent or stored."""
    made = existing(context).call(templates.preview, name, user)
    if html:
        print_exactly(templates.html_of(made))
    else:
        show(context, made, text_alone=text)


@commands.command("summary")
def preview_summary(context: typer.Context, html: Html = False, text: TextAlone = False) -> None:
    """Show the executive summary as it would be mailed now. Nothing is sent or stored."""
    made = existing(context).call(summary.preview)
    if html:
        print_exactly(made.html)
    else:
        show(context, made, text_alone=text)
