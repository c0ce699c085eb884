"""`minutebook event …`: what happened to users."""

from typing import Annotated

import typer

from cli.arguments import existing
from cli.render import show
from cli.tree import group
from views.users import events

commands = group("Events: what happened to users.")


@commands.command("send")
def send(
    context: typer.Context,
    event: Annotated[str, typer.Argument(help="Name of an event.", metavar="EVENT")],
    user: Annotated[str, typer.Option(help="Id of the user.")],
    id: Annotated[str | None, typer.Option(help="The event's own id (default: a new one).")] = None,
    at: Annotated[str | None, typer.Option(help="When it happened (default: now).")] = None,
) -> None:
    """Record an event of a user. Sending the same id twice changes nothing."""
    show(context, existing(context).ask(events.send, event, user, id, at))
