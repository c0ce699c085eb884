"""`minutehand user …`: the users of a small app."""

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import door, existing
from cli.render import show
from cli.tree import group as group_of
from models.users import read_user_rows
from views import users
from views.files import naming, read_text

commands = group_of("Users of a small app.")


@commands.command("add")
def add(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="The user's id.", metavar="ID")],
    *,
    email: Annotated[str | None, typer.Option(help="Address (default: the id).")] = None,
    name: Annotated[str | None, typer.Option(help="Name.")] = None,
    group: Annotated[list[str] | None, typer.Option(help="Group; may be repeated.")] = None,
    activated_at: Annotated[
        str | None, typer.Option(help="When the account was activated: an instant, or now.")
    ] = None,
    inactive: Annotated[bool, typer.Option("--inactive", help="Add the user as disabled.")] = False,
) -> None:
    """Store a new user. Raises the events created and activated."""
    new = users.NewUser(
        id=id,
        email=email,
        name=name,
        groups=tuple(group or ()),
        activated_at=activated_at,
        active=not inactive,
    )
    show(context, door(context).ask(users.add, new))


@commands.command("import")
def import_users(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON, JSON Lines or CSV file.")],
    events: Annotated[
        bool, typer.Option("--events", help="Raise the events of new instants.")
    ] = False,
) -> None:
    """Import users with their groups, all or none. Raises events only with --events."""
    text = read_text(file)
    with naming(file):
        rows = read_user_rows(text, file.suffix)
        done = door(context).ask(users.import_rows, rows, raises_events=events)
    show(context, done)


@commands.command("list")
def list_users(context: typer.Context) -> None:
    """List the users of the small app."""
    show(context, existing(context).ask(users.list_users))
