"""`minutebook template …`: preview and test the mails of a small app."""

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import AllApps, existing
from cli.render import print_exactly, show
from cli.tree import group
from cli.watching import show_list
from data.views import summary, templates
from models.errors import Refused
from views.door import every

commands = group("Mail templates of a small app.")

Name = Annotated[str, typer.Argument(help="The template's name.", metavar="NAME")]
User = Annotated[str | None, typer.Option(help="User to show (default: sample values).")]

Html = Annotated[Path | None, typer.Option(help="Write the HTML part to this file; - is stdout.")]
TextAlone = Annotated[bool, typer.Option("--text", help="Print only the text part.")]


@commands.command("list")
def list_templates(context: typer.Context, all_apps: AllApps = False) -> None:
    """List the templates of the small app and the number of their problems."""
    show_list(
        context,
        lambda door: templates.Templates(every(door, templates.list_templates)),
        all_apps=all_apps,
    )


@commands.command("preview")
def preview(
    context: typer.Context,
    name: Name,
    *,
    user: User = None,
    html: Html = None,
    text: TextAlone = False,
) -> None:
    """Show a template with a user's values. Nothing is sent or stored."""
    _one_of(html, text)
    made = existing(context).ask(templates.preview, name, user)
    if html is None:
        show(context, made, text_alone=text)
    else:
        _write(context, name, templates.html_of(made), html)


@commands.command("summary")
def preview_summary(context: typer.Context, html: Html = None, text: TextAlone = False) -> None:
    """Show the executive summary as it would be mailed now. Nothing is sent or stored."""
    _one_of(html, text)
    made = existing(context).ask(summary.preview)
    if html is None:
        show(context, made, text_alone=text)
    else:
        _write(context, "summary", made.html, html)


def _one_of(html: Path | None, text: bool) -> None:
    if html is not None and text:
        raise Refused("--html and --text cannot be combined; choose one")


def _write(context: typer.Context, name: str, page: str, file: Path) -> None:
    if str(file) == "-":
        print_exactly(page)
    else:
        show(context, templates.write_html(name, page, file))


@commands.command("send-test")
def send_test(
    context: typer.Context,
    name: Name,
    *,
    to: Annotated[str, typer.Option(help="The recipient's address.")],
    user: User = None,
) -> None:
    """Send a template to one address as a test mail, without a run."""
    show(context, existing(context).ask(templates.send_test, name, to, user))
