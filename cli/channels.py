"""`minutebook notify …`: channels, the chats and pagers that hooks may notify."""

from typing import Annotated

import typer

from cli.arguments import existing
from cli.render import show
from cli.tree import group
from services import channels

commands = group("Channels: chats and pagers that hooks may notify.")


@commands.command("list")
def list_channels(context: typer.Context) -> None:
    """List the channels that the settings name."""
    show(context, existing(context).ask(channels.list_all))


@commands.command("test")
def test(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of a channel.", metavar="NAME")],
) -> None:
    """Send a test message to a channel."""
    show(context, existing(context).ask(channels.test, name))
