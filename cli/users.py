"""`minutebook user …` and `event …`: the users of a small app, and what happened to them."""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from sys import maxsize
from typing import Annotated, Any

import typer

from cli.arguments import door
from cli.render import show
from cli.tree import group
from cli.verbs import offer
from models.errors import Problem
from models.users import InvalidUsers
from services import users
from services.files import naming, read_documents, read_text
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
