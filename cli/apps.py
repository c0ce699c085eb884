"""`minutehand app …`: tenants, with their data, users and actions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import sqlalchemy as sa
import typer

from cli import app_data
from cli.app_doubts import doubts
from cli.app_views import applied_as_json, print_app, print_applied, shown
from cli.documents import located, read_documents
from cli.invocation import Invocation, existing, of
from cli.output import print_json, print_line, print_table
from cli.tree import group
from models.errors import InvalidDocument, Problem, Refused
from models.problems import listed
from runtime.database import reading
from scheduler.changes.default_actions import give_maintenance
from scheduler.changes.deletion import delete_app
from scheduler.changes.validation import Author
from small_apps.document import DEFAULT_APP, SmallAppModel
from small_apps.store import app_apply, app_overview, small_apps
from small_apps.store.app_apply import AppliedApp

commands = group("Small apps: tenants with data, users and actions.")

commands.command("data")(app_data.data)

COLUMNS = {"name": "NAME", "zone": "ZONE", "owner": "OWNER", "domains": "DOMAINS"}
MOST_NAMED = 12
# With its mails and its people a small app is longer than an action.
LONGEST_APP = 64 * 2**20

Located = tuple[str, SmallAppModel]
Name = Annotated[str, typer.Argument(help="Name of a small app.", metavar="APP")]


@commands.command("add")
def add(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON or YAML file; - is stdin.")],
) -> None:
    """Store a new small app with its domains, templates and people; refuse a name that is taken.

    The small app `default` is taken once somebody gave it a document.
    """
    invocation = of(context)
    count = len(read_documents(file, LONGEST_APP)) if str(file) != "-" else 1
    if count != 1:
        raise Refused(f"{file} holds {count} documents; write one small app, or use `app apply`")
    models = _parsed([file])
    if len(models) != 1:
        raise Refused("- holds several documents; write one small app, or use `app apply`")
    with invocation.engine.begin() as connection:
        name = models[0][1].name
        if small_apps.stored_named(connection, name) not in (None, small_apps.UNTOUCHED):
            raise Refused(
                f'small app "{name}" is there already; use `minutehand app apply` to change it'
            )
        done = _apply(connection, models, invocation)
    (told,) = _told(invocation, models, done)
    if invocation.as_json:
        print_json(told)
    else:
        print_applied(told)


@commands.command("apply")
def apply(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="JSON or YAML files; - is stdin.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would change.")] = False,
) -> None:
    """Create small apps, or bring them up to their documents; all or none."""
    invocation = of(context)
    models = _parsed(files)
    with invocation.engine.connect() as connection, connection.begin() as transaction:
        done = _apply(connection, models, invocation)
        if dry_run:
            transaction.rollback()
    told = _told(invocation, models, done)
    if invocation.as_json:
        print_json(told)
        return
    for one in told:
        print_applied(one)
    if dry_run:
        print_line("nothing was stored")


@commands.command("list")
def list_apps(context: typer.Context) -> None:
    """List the small apps."""
    invocation = of(context)
    with reading(invocation.engine) as connection:
        rows: list[dict[str, Any]] = [
            {
                "name": app.name,
                "zone": app.zone,
                "owner": small_apps.document_of(connection, app.id).get("owner"),
                "domains": small_apps.domain_names(connection, app.id),
            }
            for app in small_apps.listed(connection)
        ]
    if invocation.as_json:
        print_json(rows)
    else:
        print_table([row | {"domains": ", ".join(row["domains"])} for row in rows], COLUMNS)


@commands.command("show")
def show(context: typer.Context, name: Name) -> None:
    """Show a small app: how it stands, its last operations, its document."""
    invocation = existing(context)
    with reading(invocation.engine) as connection:
        found = shown(connection, small_apps.get(connection, name))
    if invocation.as_json:
        print_json(found)
    else:
        print_app(found)


@commands.command("delete")
def delete(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Also when it ends active actions.")] = False,
) -> None:
    """Delete a small app and all of its actions; history, users and data stay."""
    invocation = existing(context)
    if name == DEFAULT_APP:
        raise Refused(f'small app "{DEFAULT_APP}" cannot be deleted; delete its actions')
    with reading(invocation.engine) as connection:
        app = small_apps.get(connection, name)
        ended = app_overview.active_names(connection, app.id, MOST_NAMED + 1)
    if ended and not yes:
        raise Refused(f'small app "{name}" has active actions: {listed(ended)}; add --yes')
    deleted = delete_app(invocation.engine, Author(invocation.actor, app, {}))
    counts = {"actions": len(deleted.names), "cancelled": deleted.cancelled}
    if invocation.as_json:
        print_json({"name": name, **counts})
        return
    told = f"{counts['actions']} actions deleted, {counts['cancelled']} operations cancelled"
    print_line(f"deleted small app {name}: {told}")


def _parsed(files: Sequence[Path]) -> list[Located]:
    """Return the models of all documents, with where each stands; raises all problems of all."""
    from small_apps.mail.checks import checked_small_app

    problems: list[Problem] = []
    documents: list[tuple[str, object]] = []
    for file in files:
        try:
            documents += read_documents(file, LONGEST_APP)
        except InvalidDocument as error:
            problems += error.problems
    models: list[Located] = []
    seen: dict[str, str] = {}
    for where, document in documents:
        try:
            model = checked_small_app(document)
        except InvalidDocument as error:
            problems += located(where, error).problems
            continue
        models.append((where, model))
        first = seen.setdefault(model.name, where)
        if first != where:
            problems.append(Problem(f"{where}: name", model.name, f"stands in {first} already"))
    if problems:
        raise InvalidDocument(problems)
    return models


def _apply(
    connection: sa.Connection, models: Sequence[Located], invocation: Invocation
) -> list[AppliedApp]:
    done = app_apply.apply_all(connection, models, invocation.actor)
    for one in done:
        give_maintenance(connection, one.app)
    return done


def _told(
    invocation: Invocation, models: Sequence[Located], done: Sequence[AppliedApp]
) -> list[dict[str, Any]]:
    return [
        applied_as_json(one, doubts(invocation, model))
        for (_, model), one in zip(models, done, strict=True)
    ]
