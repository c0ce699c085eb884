"""`minutehand user …`: the people that actions are for, and about."""

from pathlib import Path
from typing import Annotated, Any

import sqlalchemy as sa
import typer

from cli.documents import located, read_text
from cli.invocation import Invocation, existing, of
from cli.output import instant, print_json, print_line, print_table
from cli.tree import group
from models.errors import InvalidDocument, Refused
from models.sql import read_clock
from models.store import audit
from models.store.people import users
from models.users import UserModel, parse_user, parse_users, read_user_rows
from runtime.database import reading

commands = group("Users of a small app.")

COLUMNS = {
    "id": "ID",
    "email": "EMAIL",
    "standing": "STANDING",
    "groups": "GROUPS",
    "created_at": "CREATED",
    "last_seen_at": "LAST SEEN",
}
SHOWN = (
    "id", "email", "name", "active", "created_at", "activated_at", "last_seen_at", "groups",
)  # fmt: skip


@commands.command("add")
def add(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="The user's id.", metavar="ID")],
    *,
    email: Annotated[str | None, typer.Option(help="Address (default: the id).")] = None,
    name: Annotated[str | None, typer.Option(help="Name.")] = None,
    group: Annotated[list[str] | None, typer.Option(help="Group; may be repeated.")] = None,
    activated_at: Annotated[
        str | None, typer.Option(help="When the account was activated; now is an instant too.")
    ] = None,
    inactive: Annotated[bool, typer.Option("--inactive", help="Switched off.")] = False,
) -> None:
    """Store a new user. That the user was created, and activated, are events."""
    invocation = of(context)
    app = invocation.small_app
    row: dict[str, Any] = {"id": id, "groups": group or [], "active": not inactive}
    row |= {"email": email} if email is not None else {}
    row |= {"name": name} if name is not None else {}
    with invocation.engine.begin() as connection:
        now = read_clock(connection)
        if activated_at is not None:
            row["activated_at"] = instant(now) if activated_at == "now" else activated_at
        model = parse_user(row, app.zone)
        if model.activated_at is not None and model.activated_at > now:
            raise Refused(f"--activated-at {activated_at} is to come; write an instant until now")
        if not users.add(connection, app.id, model):
            raise Refused(f"user {id!r} is there already; use `minutehand user import`")
        _audit(connection, invocation, "user.add", model.id, None)
    if invocation.as_json:
        print_json({"id": model.id, "email": model.email, "groups": list(model.groups)})
        return
    print_line(f"added user {model.id} <{model.email}>")
    _print_never_activated([model])


@commands.command("import")
def import_users(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON, JSON Lines or CSV file.")],
    events: Annotated[
        bool, typer.Option("--events", help="Let instants that are new raise their events.")
    ] = False,
) -> None:
    """Import users with their groups; all or none. No event is raised unless asked for."""
    invocation = of(context)
    text = read_text(file)
    try:
        rows = read_user_rows(text, file.suffix)
        models = parse_users(rows, zone=invocation.small_app.zone)
    except InvalidDocument as error:
        raise located(str(file), error) from None
    with invocation.engine.begin() as connection:
        app = invocation.small_app
        imported = users.import_users(connection, app.id, models, raises_events=events)
        counts = {"created": imported.created, "updated": imported.updated}
        _audit(connection, invocation, "user.import", app.name, counts)
    never_activated = sum(one.activated_at is None for one in models)
    if invocation.as_json:
        print_json(counts | {"never_activated": never_activated})
        return
    print_line(f"{imported.created} users created, {imported.updated} updated")
    _print_never_activated(models)


@commands.command("list")
def list_users(context: typer.Context) -> None:
    """List the users of the small app."""
    invocation = existing(context)
    with reading(invocation.engine) as connection:
        found = users.listed(connection, invocation.small_app.id)
    if invocation.as_json:
        rows = [{key: getattr(user, key) for key in SHOWN} for user in found]
        print_json([row | {"groups": sorted(row["groups"])} for row in rows])
        return
    print_table([_row(user) for user in found], COLUMNS)


def _row(user: users.User) -> dict[str, Any]:
    standing = "active" if user.active else "inactive"
    if user.activated_at is None:
        standing += ", never activated"
    return {
        "id": user.id,
        "email": user.email,
        "standing": standing,
        "groups": ", ".join(sorted(user.groups)),
        "created_at": user.created_at,
        "last_seen_at": user.last_seen_at,
    }


def _audit(
    connection: sa.Connection,
    invocation: Invocation,
    verb: str,
    name: str,
    details: dict[str, Any] | None,
) -> None:
    audit.write(
        connection,
        small_app_id=invocation.small_app.id,
        actor=invocation.actor,
        verb=verb,
        objects={name: details},
    )


def _print_never_activated(models: list[UserModel] | tuple[UserModel, ...]) -> None:
    count = sum(one.activated_at is None for one in models)
    if count:
        print_line(
            f"  warning: users without activated_at: {count}; actions leave them out"
            " unless they include_inactivated_users"
        )
