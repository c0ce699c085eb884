"""`minutehand app …` and `minutehand user …`: tenants, and the people that actions are for."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.documents import located, read_documents, read_text
from cli.invocation import of
from cli.output import print_json, print_line, print_table
from models.errors import InvalidDocument, Refused
from models.small_app import parse_small_app
from models.store import actions, small_apps
from models.store import users as user_store
from models.users import parse_users, read_user_rows
from runtime.database import reading

commands = typer.Typer(
    help="Small apps: tenants with data, users and actions.", no_args_is_help=True
)
users = typer.Typer(help="Users of a small app.", no_args_is_help=True)

COLUMNS = {"name": "NAME", "zone": "ZONE", "domains": "DOMAINS"}


@commands.command("add")
def add(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON or YAML file; - is stdin.")],
) -> None:
    """Store a small app with its domains and templates, or bring it up to the document."""
    invocation = of(context)
    documents = read_documents(file)
    if len(documents) != 1:
        raise Refused(f"{file} holds {len(documents)} documents; write one small app")
    where, document = documents[0]
    try:
        model = parse_small_app(document)
    except InvalidDocument as error:
        raise located(where, error) from None
    with invocation.engine.begin() as connection:
        app, applied = small_apps.apply(connection, model)
        actions.write_audit(
            connection,
            small_app_id=app.id,
            actor=invocation.actor,
            verb=f"app.{applied}",
            objects={app.name: None},
        )
    if invocation.as_json:
        print_json({"name": app.name, "zone": app.zone, "change": applied})
    else:
        print_line(f"{applied} small app {app.name}, zone {app.zone}")


@commands.command("list")
def list_apps(context: typer.Context) -> None:
    """List the small apps."""
    invocation = of(context)
    with reading(invocation.engine) as connection:
        rows: list[dict[str, Any]] = [
            {
                "name": app.name,
                "zone": app.zone,
                "domains": small_apps.domain_names(connection, app.id),
            }
            for app in small_apps.listed(connection)
        ]
    if invocation.as_json:
        print_json(rows)
    else:
        print_table([row | {"domains": ", ".join(row["domains"])} for row in rows], COLUMNS)


@users.command("import")
def import_users(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON, JSON Lines or CSV file.")],
) -> None:
    """Import users with their groups; all or none. No event is raised."""
    invocation = of(context)
    text = read_text(file)
    try:
        rows = read_user_rows(text, file.suffix)
        models = parse_users(rows, zone=invocation.small_app.zone)
    except InvalidDocument as error:
        raise located(str(file), error) from None
    with invocation.engine.begin() as connection:
        imported = user_store.import_users(connection, invocation.small_app.id, models)
        counts = {"created": imported.created, "updated": imported.updated}
        actions.write_audit(
            connection,
            small_app_id=invocation.small_app.id,
            actor=invocation.actor,
            verb="user.import",
            objects={invocation.small_app.name: counts},
        )
    never_activated = sum(one.activated_at is None for one in models)
    if invocation.as_json:
        print_json(counts | {"never_activated": never_activated})
        return
    print_line(f"{imported.created} users created, {imported.updated} updated")
    if never_activated:
        print_line(
            f"  warning: users without activated_at: {never_activated}; actions leave them out"
            " unless they include_inactivated_users"
        )
