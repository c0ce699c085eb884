"""`minutehand event …`: what happened to users."""

from typing import Annotated

import typer

from cli.arguments import existing
from cli.render import show
from cli.tree import group
from views import events

commands = group("Events: what happened to users.")


@commands.command("send")
def send(
    context: typer.Context,
    event: Annotated[str, typer.Argument(help="Name of an event.", metavar="EVENT")],
    user: Annotated[str, typer.Option(help="Id of the user it is about.")],
    id: Annotated[
        str | None, typer.Option(help="The event's own id (default: one is made).")
    ] = None,
    at: Annotated[str | None, typer.Option(help="When it happened (default: now).")] = None,
) -> None:
    """Record that something happened to a user. The same id twice changes nothing."""
    show(context, events.send(existing(context), event, user, id, at))
