"""`minutebook user …` and `event …`: the users of a small app, and what happened to them."""

from pathlib import Path
from sys import maxsize
from typing import Annotated

import typer

from cli.arguments import backend
from cli.render import show
from cli.tree import group
from cli.verbs import offer
from services import users
from services.files import naming, read_documents
from services.users import events as of_users

commands = group("Users of a small app.")
events = group("Events: what happened to users.")
offer(
    commands,
    add=users.add,
    list=users.list_users,
    show=users.show,
    update=users.update,
    delete=users.delete,
)
offer(events, send=of_users.send)


@commands.command("import")
def import_users(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON, JSON Lines or YAML file; - is stdin.")],
    events: Annotated[
        bool, typer.Option("--events", help="Raise events for new instants.")
    ] = False,
) -> None:
    """Import users with their groups, all or none. Raises events only with --events."""
    rows = [row for _, row in read_documents(file, maxsize)]
    with naming(file):
        done = backend(context).call(users.import_rows, rows, raises_events=events)
    show(context, done)
