"""`minutebook user …` and `event …`: the users of a small app, and what happened to them."""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from sys import maxsize
from typing import Annotated, Any

import typer

from cli.arguments import door, existing
from cli.render import show
from cli.tree import group as group_of
from models.errors import Problem
from models.users import InvalidUsers
from services import users
from services.door import every
from services.files import naming, read_documents, read_text
from services.users import events as of_users

commands = group_of("Users of a small app.")
events = group_of("Events: what happened to users.")

Id = Annotated[str, typer.Argument(help="The user's id.", metavar="ID")]
Email = Annotated[str | None, typer.Option(help="Address (default: the id).")]
Activated = Annotated[
    str | None, typer.Option(help="When the account was activated: an instant, or now.")
]


@commands.command("add")
def add(
    context: typer.Context,
    id: Id,
    *,
    email: Email = None,
    name: Annotated[str | None, typer.Option(help="Name.")] = None,
    group: Annotated[list[str] | None, typer.Option(help="Group; may be repeated.")] = None,
    activated_at: Activated = None,
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
    file: Annotated[Path, typer.Argument(help="A JSON, JSON Lines, YAML or CSV file.")],
    events: Annotated[
        bool, typer.Option("--events", help="Raise the events of new instants.")
    ] = False,
) -> None:
    """Import users with their groups, all or none. Raises events only with --events."""
    is_csv = file.suffix.lower() == ".csv"
    rows = [] if is_csv else [row for _, row in read_documents(file, maxsize)]
    with naming(file):
        rows += csv_rows(read_text(file)) if is_csv else []
        done = door(context).ask(users.import_rows, rows, raises_events=events)
    show(context, done)


@commands.command("list")
def list_users(context: typer.Context) -> None:
    """List the users of the small app."""
    show(context, users.Users(every(existing(context), users.list_users)))


@commands.command("show")
def show_user(context: typer.Context, id: Id) -> None:
    """Show a user."""
    show(context, existing(context).ask(users.show, id))


@commands.command("update")
def update(
    context: typer.Context,
    id: Id,
    *,
    email: Annotated[str | None, typer.Option(help="Address.")] = None,
    name: Annotated[str | None, typer.Option(help="Name.")] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="All groups: repeat for more, '' for none.")
    ] = None,
    activated_at: Activated = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Enable or disable the user.")
    ] = None,
) -> None:
    """Change the given values of a user. --activated-at raises the event activated."""
    groups = None if group is None else tuple(filter(None, group))
    changed = users.ChangedUser(
        email=email, name=name, groups=groups, activated_at=activated_at, active=active
    )
    show(context, existing(context).ask(users.update, id, changed))


@commands.command("delete")
def delete(context: typer.Context, id: Id) -> None:
    """Delete a user. Runs about the user stay."""
    show(context, existing(context).ask(users.delete, id))


@events.command("send")
def send(
    context: typer.Context,
    event: Annotated[str, typer.Argument(help="Name of an event.", metavar="EVENT")],
    user: Annotated[str, typer.Option(help="Id of the user.")],
    id: Annotated[str | None, typer.Option(help="The event's own id (default: a new one).")] = None,
    at: Annotated[str | None, typer.Option(help="When it happened (default: now).")] = None,
) -> None:
    """Record an event of a user. Sending the same id twice changes nothing."""
    show(context, existing(context).ask(of_users.send, event, user, id, at))


def csv_rows(text: str) -> list[object]:
    """Return the users of CSV text; raises InvalidUsers.

    The first line names the columns, empty cells are absent, and `;` separates groups.
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    reader.restval = ""
    try:
        return [dict(_cells(row)) for row in reader]
    except csv.Error as error:
        remedy = f"is not CSV ({error}); separate cells by commas, and quote with double quotes"
        raise InvalidUsers([Problem(f"line {reader.line_num}", None, remedy)]) from None


def _cells(row: Mapping[str | None, Any]) -> Iterator[tuple[str, object]]:
    for column, cell in row.items():
        if column is None:
            yield "(cells beyond the last column)", cell
        elif column.strip() == "groups":
            yield "groups", [name.strip() for name in cell.split(";") if name.strip()]
        elif cell.strip():
            yield column.strip(), cell.strip()
