"""`minutebook queue …`: pause and resume what is sent to a queue, and list the queues."""

from typing import Annotated

import typer

from cli.arguments import Until, existing
from cli.render import show
from cli.tree import group
from views.status import holds

commands = group("Queues: pause, resume and list what is sent to.")

Name = Annotated[
    str,
    typer.Argument(
        help="A queue as `queue list` shows it, or @NAME for all of a Celery application.",
        metavar="NAME",
    ),
]


@commands.command("pause")
def pause(context: typer.Context, name: Name, until: Until = None) -> None:
    """Send nothing to a queue: record what is due, and send it when the pause ends.

    What a broker already has may still start; running operations go on.
    """
    show(context, existing(context).ask(holds.pause, name, until))


@commands.command("resume")
def resume(context: typer.Context, name: Name) -> None:
    """Send to a queue again; the next tick sends what waited."""
    show(context, existing(context).ask(holds.resume, name))


@commands.command("list")
def list_queues(context: typer.Context) -> None:
    """List what is paused, and the queues that have operations or workers."""
    show(context, existing(context).ask(holds.list_queues))
