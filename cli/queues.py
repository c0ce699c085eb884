"""`minutebook queue list`: the queues."""

import typer

from cli.arguments import existing
from cli.render import show
from cli.tree import group
from views.status import pauses

commands = group("Queues: list what is sent to.")


@commands.command("list")
def list_queues(context: typer.Context) -> None:
    """List the queues that are paused, and those that have runs or workers."""
    show(context, existing(context).ask(pauses.list_queues))
