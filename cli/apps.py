"""`minutehand app …`: small apps (tenants), with their data, users and actions."""

from pathlib import Path
from typing import Annotated

import typer

from cli.app_data import data
from cli.arguments import DryRun, existing, installation
from cli.render import show
from cli.tree import group
from views import apps

commands = group("Small apps: tenants with data, users and actions.")
commands.command("data")(data)

Name = Annotated[str, typer.Argument(help="Name of a small app.", metavar="APP")]


@commands.command("add")
def add(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON or YAML file; - is stdin.")],
) -> None:
    """Store a new small app with its domains, templates and people; refuse a name that is taken.

    The name `default` is taken once that small app has a document.
    """
    show(context, apps.add(installation(context), file))


@commands.command("apply")
def apply(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="JSON or YAML files; - is stdin.")],
    dry_run: DryRun = False,
) -> None:
    """Create small apps, or update them to their documents; all or none."""
    show(context, apps.apply(installation(context), files, dry_run=dry_run), dry_run=dry_run)


@commands.command("list")
def list_apps(context: typer.Context) -> None:
    """List the small apps."""
    show(context, apps.list_apps(installation(context)))


@commands.command("show")
def show_app(context: typer.Context, name: Name) -> None:
    """Show a small app: its status, last operations and document."""
    show(context, apps.show(existing(context), name))


@commands.command("delete")
def delete(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Also delete active actions.")] = False,
) -> None:
    """Delete a small app and all of its actions; history, users and data stay."""
    show(context, apps.delete(existing(context), name, is_sure=yes))
