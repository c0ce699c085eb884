"""`minutehand token …`: tokens of the HTTP API."""

from typing import Annotated

import typer

from cli.arguments import door, existing
from cli.render import show
from cli.tree import group as group_of
from models.roles import Role
from views import tokens

commands = group_of("Tokens of the HTTP API.")


@commands.command("create")
def create(
    context: typer.Context,
    role: Annotated[Role, typer.Option(help="What its bearer may do.")],
    expires: Annotated[
        str | None, typer.Option(help="Lifetime, such as P90D (default: until it is revoked).")
    ] = None,
) -> None:
    """Make a token, for one small app with --app, and print it once."""
    show(context, door(context).ask(tokens.create, role, expires))


@commands.command("list")
def list_tokens(context: typer.Context) -> None:
    """List the tokens that are not revoked."""
    show(context, existing(context).ask(tokens.list_tokens))


@commands.command("revoke")
def revoke(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="Id of a token.", metavar="ID")],
) -> None:
    """Revoke a token, at once."""
    show(context, existing(context).ask(tokens.revoke, id))
