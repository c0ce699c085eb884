"""The tree of commands: a call loads the module of the command that it names, and no other.

All of them together take longer to load than most commands take to run.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer

# Global options may stand before or after the command.
FLAGS = {"--json"}
VALUES = {"--home", "--app"}

# By name: the function, and what `minutehand --help` says of it.
COMMANDS = {
    "backfill": (
        "cli.backfills:backfill",
        "Run the occurrences of a range of the past that are missing or failed.",
    ),
    "up": (
        "cli.service:up",
        "Run everything here: broker, daemon, a worker for each queue, as children of this one.",
    ),
    "worker": (
        "cli.service:worker",
        "Run a Celery worker that executes operations.",
    ),
    "agent": (
        "cli.agent:agent",
        "Stand beside a Celery worker that follows. Started by `minutehand.follow`, not by hand.",
    ),
    "migrate": (
        "cli.service:migrate",
        "Bring the database to this release's schema, and give each small app its maintenance.",
    ),
    "status": (
        "cli.status:status",
        "Show the daemon's last tick, workers, operations of the last day, and what is set aside.",
    ),
    "simulate": (
        "cli.simulating:simulate_files",
        "Say what would be sent in [from, to), and check expectations. Nothing is stored or read.",
    ),
    "doctor": (
        "cli.doctor:doctor",
        "Check database, broker, clocks, daemon, workers, mail and settings; change nothing.",
    ),
}
GROUPS = {
    "action": ("cli.actions:commands", "Scheduled actions: what to do, when, for whom."),
    "operation": ("cli.repeats:commands", "Operations: the runs of actions."),
    "app": ("cli.apps:commands", "Small apps: tenants with data, users and actions."),
    "template": ("cli.templates:commands", "Templates of mails, as a small app has them."),
    "user": ("cli.users:commands", "Users of a small app."),
    "event": ("cli.events:commands", "Events: what happened to users."),
    "step": ("cli.steps:commands", "Steps: what actions can do."),
}


def grow(cli: typer.Typer, names: Sequence[str]) -> None:
    """Add the commands of `names`, and of the others what `--help` shows."""
    for name, (place, text) in COMMANDS.items():
        is_named = name in names
        cli.command(name, help=None if is_named else text)(_loaded(place) if is_named else _nothing)
    for name, (place, text) in GROUPS.items():
        cli.add_typer(_loaded(place) if name in names else _leaf(), name=name, help=text)


def command_named(arguments: Sequence[str]) -> list[str]:
    """Return the command that hoisted arguments name, in a list; empty when they name none."""
    queue = list(arguments)
    while queue and queue[0].startswith("-"):
        queue = queue[2 if queue[0] in VALUES else 1 :]
    return queue[:1]


def hoisted(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the global options first, wherever they stood.

    What follows `--` stays where it is.
    """
    front: list[str] = []
    rest: list[str] = []
    queue = list(arguments)
    while queue:
        argument = queue.pop(0)
        name = argument.split("=", 1)[0]
        if argument == "--":
            return [*front, *rest, argument, *queue]
        if argument in FLAGS or (name in VALUES and "=" in argument):
            front.append(argument)
        elif argument in VALUES and queue:
            front += [argument, queue.pop(0)]
        else:
            rest.append(argument)
    return front + rest


def _loaded(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _leaf() -> typer.Typer:
    leaf = typer.Typer()
    leaf.command("nothing")(_nothing)
    leaf.callback()(_nothing)
    return leaf


def _nothing() -> None:
    """Stand for a command that was not named."""
