"""`minutebook step …`: the steps that actions may name, and modules that failed to load."""

import typer

from cli.arguments import door
from cli.render import show
from cli.tree import group
from services import steps

commands = group("Steps: what actions can do.")


@commands.command("list")
def list_steps(context: typer.Context) -> None:
    """List built-in and user-defined steps, and modules that failed to load."""
    show(context, door(context).ask(steps.list_steps))
