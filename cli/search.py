"""`minutebook search`: find anything by a text."""

from typing import Annotated

import typer

from cli.arguments import existing
from cli.render import show
from views import search as everywhere


def search(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="A part of a name, an error or an id.")],
) -> None:
    """Find actions, runs, tasks, owners, users and errors by a text, ten of each at most."""
    show(context, existing(context).ask(everywhere.search, text))
