"""`minutebook app …`: small apps (tenants), with their data, users and actions."""

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import DryRun, backend, existing_here
from cli.render import show
from cli.tree import group
from cli.verbs import offer
from models.errors import Hint, InvalidDocument, Refused
from models.tenant.document import APP_NAME
from services import apps
from services.apps import changes, trust
from services.apps.trust import TrustChange
from services.backend import every
from services.files import read_all

commands = group("Small apps: tenants with data, users and actions.")
offer(commands, list=apps.list_apps, show=apps.show, delete=changes.delete)

Name = Annotated[str, typer.Argument(help="Name of a small app.", metavar="APP")]


@commands.command("add")
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A name, such as shop.", metavar="NAME")],
    trusted: Annotated[
        bool | None,
        typer.Option(
            "--trusted/--restricted",
            help="Let it name whatever the settings allow, or take that back.",
            show_default=False,
        ),
    ] = None,
    queues: Annotated[
        list[str] | None, typer.Option("--queue", help="A queue that it may use; repeat for more.")
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option("--tasks", help="Celery tasks that it may send: a name or a pattern."),
    ] = None,
) -> None:
    """Add a small app by its name, or change how far one is trusted.

    A new one is restricted: it reaches its own folder, public addresses and its own people.
    """
    change = TrustChange(trusted=trusted, queues=tuple(queues or ()), tasks=tuple(tasks or ()))
    if APP_NAME.fullmatch(name) is None:
        raise Refused(
            f"{name!r} is no name of a small app; write small letters, digits, - and _ such as "
            "shop, or give a file to `minutebook app apply`"
        )
    opened = backend(context)
    if change == TrustChange() and name in {one.name for one in every(opened, apps.list_apps)}:
        raise Refused(f'small app "{name}" already exists', Hint("add --trusted or --restricted"))
    show(context, opened.call(trust.trust_app, name, change))


@commands.command("apply")
def apply(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="JSON or YAML files; - is stdin.")],
    dry_run: DryRun = False,
) -> None:
    """Create small apps, or update them to their documents; all or none."""
    documents, unread = read_all(files, changes.LONGEST_APP)
    problems = list(unread)
    try:
        # With a file that cannot be read nothing is stored; the faults of all are raised.
        done = backend(context).call(changes.apply, documents, dry_run=dry_run or bool(unread))
    except InvalidDocument as error:
        problems += error.problems
    if problems:
        raise InvalidDocument(problems)
    show(context, done, dry_run=dry_run)


@commands.command("hook-secret")
def hook_secret(context: typer.Context, name: Name) -> None:
    """Print the secret that signs the webhooks of a small app, for their receivers."""
    show(context, trust.hook_secret(existing_here(context), name))
