"""`minutebook app …`: small apps (tenants), with their data, users and actions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.arguments import DryRun, Until, door, existing, existing_here
from cli.render import show
from cli.tree import group
from models.errors import InvalidDocument, Problem, Refused
from views import apps
from views.apps import changes, grants, limits
from views.door import Door, every
from views.files import Document, read_all, read_documents
from views.status import holds

commands = group("Small apps: tenants with data, users and actions.")

Name = Annotated[str, typer.Argument(help="Name of a small app.", metavar="APP")]


@commands.command("add")
def add(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON or YAML file; - is stdin.")],
) -> None:
    """Store a new small app with its domains, templates and people; refuse a name that is taken.

    `default`, and a small app that was only granted something, are taken once they have a document.
    """
    documents = read_documents(file, changes.LONGEST_APP)
    if len(documents) != 1:
        raise Refused(
            f"{file} holds {len(documents)} documents; write one small app, or use `app apply`"
        )
    show(context, door(context).ask(changes.create, documents[0]))


@commands.command("apply")
def apply(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="JSON or YAML files; - is stdin.")],
    dry_run: DryRun = False,
) -> None:
    """Create small apps, or update them to their documents; all or none."""
    documents, unread = read_all(files, changes.LONGEST_APP)
    show(context, _applied(door(context), documents, unread, dry_run=dry_run), dry_run=dry_run)


@commands.command("list")
def list_apps(context: typer.Context) -> None:
    """List the small apps."""
    show(context, apps.Apps(every(door(context), apps.list_apps)))


@commands.command("show")
def show_app(context: typer.Context, name: Name) -> None:
    """Show a small app: its status, last operations and document."""
    show(context, existing(context).ask(apps.show, name))


def _granting(what: str, *names: str) -> Any:
    """Return the option of one kind of grants."""
    return typer.Option(*names, help=f"{what}; repeat for more, '' for none.", show_default=False)


Given = list[str] | None


@commands.command("grant")
def grant(  # noqa: PLR0917 - typer passes them by name
    context: typer.Context,
    name: Name,
    files: Annotated[Given, _granting("Folder beneath the data root")] = None,
    connections: Annotated[Given, _granting("Connection, or a pattern")] = None,
    readers: Annotated[Given, _granting("Reader, or a pattern")] = None,
    env: Annotated[Given, _granting("Variable or file of a secret, or a pattern")] = None,
    mail: Annotated[Given, _granting("Mail address of hooks, or a pattern")] = None,
    notify: Annotated[Given, _granting("Channel of hooks, or a pattern")] = None,
    tasks: Annotated[Given, _granting("Task of your Celery application, or a pattern")] = None,
    queues: Annotated[Given, _granting("Queue beside quick, heavy and default")] = None,
    exchanges: Annotated[
        Given, _granting("Exchange of your application's broker, or a pattern")
    ] = None,
    applications: Annotated[
        Given, _granting("Celery application beside the default one, or a pattern")
    ] = None,
    steps: Annotated[Given, _granting("Step of your own, or a pattern")] = None,
    programs: Annotated[
        Given,
        _granting("Program, with variables as x(DAY T_*), or shell", "--commands"),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Grant all that the settings allow, but no commands.")
    ] = False,
) -> None:
    """Set what a small app may reach; without options, show it.

    Each option replaces the list of its kind. Documents are checked when they are saved, and
    operations when they run.
    """
    kinds = {
        "files": files, "connections": connections, "readers": readers, "env": env, "mail": mail,
        "notify": notify, "tasks": tasks, "queues": queues, "exchanges": exchanges,
        "applications": applications, "steps": steps, "commands": programs,
    }  # fmt: skip
    lists = {kind: names for kind, names in kinds.items() if names is not None}
    opened = existing(context)
    if lists or everything:
        show(context, opened.ask(grants.grant, name, lists, all_=everything))
    else:
        show(context, opened.ask(grants.granted, name))


@commands.command("limit")
def limit(
    context: typer.Context,
    name: Name,
    actions: Annotated[int | None, typer.Option(min=-1, help="How many actions.")] = None,
    disk_mb: Annotated[
        int | None, typer.Option(min=-1, help="MiB of its snapshots and downloads.")
    ] = None,
) -> None:
    """Set what a small app may use; without options, show it.

    0 is no limit, -1 is the installation's limit again.
    """
    given = {"actions": actions, "disk_mb": disk_mb}
    changes = {what: most for what, most in given.items() if most is not None}
    opened = existing(context)
    if changes:
        show(context, opened.ask(limits.limit, name, changes))
    else:
        show(context, opened.ask(limits.limits, name))


@commands.command("hook-secret")
def hook_secret(context: typer.Context, name: Name) -> None:
    """Print the secret that signs the webhooks of a small app, for their receivers."""
    show(context, grants.hook_secret(existing_here(context), name))


@commands.command("delete")
def delete(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Also delete active actions.")] = False,
) -> None:
    """Delete a small app and all of its actions; history, users and data stay."""
    show(context, existing(context).ask(changes.delete, name, is_sure=yes))


def _applied(
    opened: Door, documents: Sequence[Document], unread: Sequence[Problem], *, dry_run: bool
) -> changes.AppliedApps:
    """Apply documents; with unreadable files store nothing, and raise the problems of all."""
    problems = list(unread)
    try:
        done = opened.ask(changes.apply, documents, dry_run=dry_run or bool(unread))
    except InvalidDocument as error:
        problems += error.problems
    if problems:
        raise InvalidDocument(problems)
    return done


@commands.command("pause")
def pause(context: typer.Context, name: Name, until: Until = None) -> None:
    """Send nothing of a small app: record what is due, and send it when the pause ends.

    What a broker already has may still start; running operations go on.
    """
    show(context, existing(context).ask(holds.pause_app, name, until))


@commands.command("resume")
def resume(context: typer.Context, name: Name) -> None:
    """Send what is due of a small app again; the next tick sends what waited."""
    show(context, existing(context).ask(holds.resume_app, name))
