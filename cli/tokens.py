"""`minutebook token …`: tokens of the HTTP API, and links to the dashboard."""

from typing import Annotated

import typer

from cli.arguments import here
from cli.render import show
from cli.tree import group
from cli.verbs import offer
from models.roles import Role
from services import tokens
from services.tokens import sessions

commands = group("Tokens of the HTTP API, and links that sign in.")


offer(
    commands,
    create=tokens.create,
    list=tokens.list_tokens,
    rotate=tokens.rotate,
    revoke=tokens.revoke,
)


@commands.command("link")
def link(
    context: typer.Context,
    role: Annotated[Role, typer.Option(help="What the visitor may do.")] = Role.VIEWER,
) -> None:
    """Print a link that signs a browser in once, within an hour."""
    show(context, sessions.make_link(here(context), role))
