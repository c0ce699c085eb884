"""The tree of commands; a call loads only the module of its command.

Loading all modules takes longer than most commands.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from runtime.plug_ins import loaded, plug_ins

# Global options may stand before or after the command.
FLAGS = {"--json"}
VALUES = {"--home", "--app", "--url", "--token", "--token-file"}
# A command with an option of the same name.
OWN = {"--url": ["job", "add"]}

# By name: the command's place and its text in `--help`.
Places = Mapping[str, tuple[str, str]]

OWN_COMMANDS: Places = {
    "action": ("cli.actions:commands", "Scheduled actions: what to do, when, for whom."),
    "run": ("cli.runs:commands", "Runs of actions: list, show, retry, cancel."),
    "app": ("cli.apps:commands", "Small apps: tenants with data, users and actions."),
    "user": ("cli.users:commands", "Users of a small app."),
    "event": ("cli.users:events", "Events: what happened to users."),
    "step": ("cli.steps:commands", "Steps: what actions can do."),
    "job": ("cli.jobs:commands", "Jobs for workers in any language."),
    "token": ("cli.tokens:commands", "Tokens of the HTTP API, and links that sign in."),
    "notify": ("cli.channels:commands", "Channels: chats and pagers that hooks may notify."),
    "backfill": ("cli.backfills:backfill", "Run a range of an action's past."),
    "init": ("cli.processes:init", "Write a commented action and settings to begin with."),
    "up": ("cli.processes:up", "Run broker, daemon, workers and the API here."),
    "down": ("cli.processes:down", "Stop what `up` started, from another terminal."),
    "daemon": ("cli.processes:daemon", "Run the daemon, which sends what is due."),
    "worker": ("cli.processes:worker", "Run a Celery worker that runs what is sent."),
    "web": ("cli.processes:web", "Serve the HTTP API, and the pages of plug-ins."),
    "migrate": ("cli.processes:migrate", "Upgrade the database to this release."),
    "status": ("cli.status:status", "Show the daemon, workers, and runs of the last day."),
    "pause": (
        "cli.pauses:pause",
        "Pause everything, a queue or a small app.",
    ),
    "resume": ("cli.pauses:resume", "End a pause."),
    "queue": ("cli.pauses:queues", "Queues: list what is sent to."),
    "simulate": (
        "cli.simulate:simulate",
        "Show what would be sent in a range, without a database.",
    ),
    "doctor": ("cli.status:doctor", "Check everything that Minutebook needs; change nothing."),
}
COMMANDS: Places = {
    **OWN_COMMANDS,
    **{name: place for one in plug_ins() for name, place in one.commands.items()},
}


class Tree(TyperGroup):
    """The group of all commands, each loaded on demand."""

    def __init__(self, **options: Any) -> None:
        # Their names alone, from which Typer suggests one for a typo.
        super().__init__(**{**options, "commands": dict.fromkeys(COMMANDS)})

    def get_command(self, _context: Any, name: str) -> Any:
        """Return a command, None for an unknown one; loads its module."""
        return _loaded(name) if name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's signature
        """Write the list of commands for `--help`, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _loaded(name: str) -> Any:
    found = loaded(COMMANDS[name][0])
    for one in plug_ins():
        for module in one.subcommands.get(name, ()):
            import_module(module)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    command = get_command(found)
    command.name = name
    return command


def group(text: str) -> typer.Typer:
    """Return a group of commands; without a command it shows its help."""
    made = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
    # Without a callback Typer takes a single command for the whole group.
    made.callback(help=text)(lambda: None)
    return made


def hoisted(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the global options first, but for those after `--`."""
    if list(arguments) == ["version"]:
        return ["--version"]
    front: list[str] = []
    rest: list[str] = []
    queue = list(arguments)
    while queue:
        argument = queue.pop(0)
        name = argument.split("=", 1)[0]
        if argument == "--":
            return [*front, *rest, argument, *queue]
        is_global = name in FLAGS | VALUES and rest[:2] != OWN.get(name)
        if is_global and (argument in FLAGS or "=" in argument):
            front.append(argument)
        elif is_global and queue:
            front += [argument, queue.pop(0)]
        else:
            rest.append(argument)
    return front + rest
