"""Command lines of ours that a deployment holds, parsed as a terminal's are."""

from typing import Any

from typer.main import get_command

from cli.main import cli
from cli.tree import hoisted


def parse_minutebook(arguments: list[str]) -> None:
    """Parse a command line of ours; raises for an unknown command, option or value."""
    command: Any = get_command(cli)
    context = command.make_context("minutebook", hoisted(arguments))
    rest = [*context._protected_args, *context.args]
    while rest:
        name, *rest = rest
        command = command.get_command(context, name)
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "commands"):
            return
        rest = [*context._protected_args, *context.args]
