"""`minutehand app …`: tenants, with their data, users and actions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.app_doubts import doubts
from cli.documents import located, read_documents
from cli.invocation import of
from cli.output import print_json, print_line, print_table
from models.errors import InvalidDocument, Refused
from models.small_app import parse_small_app
from models.store import audit, small_apps
from runtime.database import reading

commands = typer.Typer(
    help="Small apps: tenants with data, users and actions.", no_args_is_help=True
)

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
        audit.write(
            connection,
            small_app_id=app.id,
            actor=invocation.actor,
            verb=f"app.{applied}",
            objects={app.name: None},
        )
    warned = doubts(invocation, model)
    if invocation.as_json:
        told = {"name": app.name, "zone": app.zone, "change": applied}
        print_json(told | ({"warnings": warned} if warned else {}))
        return
    print_line(f"{applied} small app {app.name}, zone {app.zone}")
    for warning in warned:
        print_line(f"  warning: {warning}")


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
