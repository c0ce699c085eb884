"""`minutehand step …`: the steps that actions may name, and what could not be loaded."""

import typer

from cli.arguments import installation
from cli.render import show
from cli.tree import group
from views import steps

commands = group("Steps: what actions can do.")


@commands.command("list")
def list_steps(context: typer.Context) -> None:
    """List the steps, built in and your own, and what could not be loaded."""
    show(context, steps.list_steps(installation(context)))
