"""Make, list and revoke the tokens of the HTTP API."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from pydantic import Field

from models.errors import Refused
from models.roles import Role
from models.store import tokens
from models.values.durations import parse_span
from runtime.database import reading
from runtime.visible import visible_line
from services.installation import Installation
from services.lookup import refusing
from services.verbs import ADMINISTER, Verb
from services.view import Instant, Listing, Page, View, first_of

# The longest life of a token that expires.
LONGEST_LIFE = timedelta(days=3660)
LONGEST_NAME = 80


class NewToken(View):
    """A token that was just made. It is shown once: only a hash of it is stored."""

    id: str = Field(description="Id of the token, by which it is revoked.")
    token: str = Field(description="The token itself, shown this once.")
    role: Role = Field(description="What it may do.")
    app: str | None = Field(description="Its small app; null for the whole installation.")


class Token(View):
    """A token, without its secret."""

    id: str = Field(description="Id of the token, by which it is revoked.")
    role: str = Field(description="What it may do.")
    app: str | None = Field(description="Its small app; null for the whole installation.")
    created_at: Instant = Field(description="When it was made.")
    name: str | None = Field(None, description="The person or program that it was made for.")
    created_by: str = Field(description="Who made it.")
    tasks: tuple[str, ...] | None = Field(
        None, description="The tasks that a worker follows with it, by patterns."
    )
    expires_at: Instant | None = Field(description="When it stops working; null: never.")
    last_used_at: Instant | None = Field(description="To the minute.")

    @property
    def scope(self) -> str:
        """Its small app, or `all`."""
        return self.app or "all"


class Tokens(Listing[Token]):
    """The tokens that are not revoked, the newest first."""


class RevokedToken(View):
    """A token that opens nothing any more."""

    id: str = Field(description="Id of the token.")


@Verb(
    "create_token",
    "POST /api/tokens",
    ADMINISTER,
    body=("role", "expires", "name", "tasks"),
    status=201,
)
def create(
    installation: Installation,
    role: Annotated[Role, Field(description="What its bearer may do.")],
    expires: Annotated[
        str | None, Field(description="Lifetime, such as P90D; until it is revoked without one.")
    ] = None,
    name: Annotated[
        str | None, Field(description="The person or program that it is for, such as Ann.")
    ] = None,
    tasks: Annotated[
        Sequence[str] | None,
        Field(description="The tasks that a worker follows with it: names or patterns."),
    ] = None,
) -> NewToken:
    """Create a token, of the small app that is named or of the installation; it is shown once.

    `expires` is an ISO 8601 duration; without it the token lasts until it is revoked.
    Changes made by it carry `name`, that of its person or program. With patterns of `tasks`, a
    worker follows these tasks of the Celery application, and takes no jobs.
    """
    if tasks and role is not Role.WORKER:
        raise Refused(f"the role {role} follows no tasks; make a token of the role worker for them")
    app = installation.small_app if installation.is_bound else None
    whose = _name_in(name)
    with refusing("expires", expires or ""):
        lifetime = None if expires is None else parse_span(expires, most=LONGEST_LIFE)
    app_id = None if app is None else app.id
    with installation.engine.begin() as connection:
        patterns = tuple(tasks) if tasks else None
        wanted = tokens.TokenRequest(
            role, app_id, lifetime, installation.actor, name=whose, tasks=patterns
        )
        id, text = tokens.create(connection, wanted)
        its = {"role": role} | ({"tasks": list(patterns)} if patterns else {})
        installation.audit(connection, app_id, "token.create", {id: its})
    return NewToken(id=id, token=text, role=role, app=None if app is None else app.name)


def _name_in(text: str | None) -> str | None:
    """Return a name as it is stored; raises Refused for one that no line can show."""
    name = None if text is None else text.strip()
    if name is not None and (not 0 < len(name) <= LONGEST_NAME or name != visible_line(name)):
        raise Refused(
            f"the name {text!r} is no line of 1 to {LONGEST_NAME} characters; write a name such as "
            "Ann"
        )
    return name


def create_first(installation: Installation) -> NewToken | None:
    """Make an admin's token of the installation if no token was ever made, else return None."""
    with reading(installation.engine) as connection:
        if tokens.any_made(connection):
            return None
    return create(installation, Role.ADMIN, None)


@Verb("list_tokens", "GET /api/tokens", ADMINISTER, pages=Tokens)
def list_tokens(installation: Installation, limit: int, cursor: str | None = None) -> Page[Token]:
    """List the tokens that are not revoked."""
    with reading(installation.engine) as connection:
        found = tokens.listed(connection, installation.scope, cursor, limit + 1)
    shown, following = first_of(found, limit, lambda row: row["id"])
    return Page[Token](items=tuple(Token.of(row) for row in shown), next=following)


@Verb("rotate_token", "POST /api/tokens/{id}:rotate", ADMINISTER)
def rotate(
    installation: Installation,
    id: str,
    grace: Annotated[
        str | None,
        Field(description="How long the old one goes on, such as PT1H; without it, it ends now."),
    ] = None,
) -> NewToken:
    """Replace a token by a new one of the same role, app, name and expiry; it is shown once.

    Raises NotFound.
    """
    with refusing("grace", grace or ""):
        span = None if grace is None else parse_span(grace, most=LONGEST_LIFE)
    with installation.engine.begin() as connection:
        scope, actor = installation.scope, installation.actor
        old, new_id, text = tokens.rotate(connection, id, scope, actor, span)
        installation.audit(connection, old["small_app_id"], "token.rotate", {id: {"by": new_id}})
    return NewToken(id=new_id, token=text, role=Role(old["role"]), app=old["app"])


@Verb("revoke_token", "DELETE /api/tokens/{id}", ADMINISTER)
def revoke(installation: Installation, id: str) -> RevokedToken:
    """Revoke a token or a link, at once: browsers that it signed in are signed out.

    Raises NotFound.
    """
    with installation.engine.begin() as connection:
        kind, app_id = tokens.revoke(connection, id, installation.scope)
        installation.audit(connection, app_id, f"{kind}.revoke", {id: None})
    return RevokedToken(id=id)
