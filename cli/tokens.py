"""`minutebook token …`: tokens of the HTTP API, and links to the dashboard."""

from typing import Annotated

import typer

from cli.arguments import door, existing, here
from cli.render import show
from cli.tree import group as group_of
from models.roles import Role
from services import tokens
from services.door import every
from services.tokens import sessions

commands = group_of("Tokens of the HTTP API, and links to the dashboard.")


@commands.command("create")
def create(
    context: typer.Context,
    role: Annotated[Role, typer.Option(help="What its bearer may do.")],
    expires: Annotated[
        str | None, typer.Option(help="Lifetime, such as P90D (default: until it is revoked).")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The person or program that it is for, such as Ann.")
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(help="For a worker that follows Celery tasks: their names or patterns."),
    ] = None,
) -> None:
    """Create a token (with --app, for one small app) and print it once."""
    show(context, door(context).ask(tokens.create, role, expires, name, tasks))


@commands.command("link")
def link(
    context: typer.Context,
    role: Annotated[Role, typer.Option(help="What the visitor may do.")] = Role.VIEWER,
) -> None:
    """Print a link that signs in to the dashboard once, within an hour."""
    show(context, sessions.make_link(here(context), role))


@commands.command("list")
def list_tokens(context: typer.Context) -> None:
    """List the tokens that are not revoked."""
    show(context, tokens.Tokens(every(existing(context), tokens.list_tokens)))


@commands.command("revoke")
def revoke(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="Id of a token or a session.", metavar="ID")],
) -> None:
    """Revoke a token, with the sessions that it opened, or one session, at once."""
    show(context, existing(context).ask(tokens.revoke, id))
