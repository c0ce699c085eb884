"""Open, list and end the sessions of the dashboard, and make links that open one."""

from datetime import timedelta

from pydantic import Field

from models.errors import Refused
from models.roles import PERMITS, Permission, Role, TokenKind
from models.store import audit, tokens
from models.store.tokens import Bearer, Wanted
from runtime.database import reading
from runtime.visible import visible_line
from views.installation import Installation
from views.view import Instant, Listing, View

LINK_LIFE = timedelta(hours=1)
LONGEST_BROWSER = 200


class Session(View):
    """A session of the dashboard that is open."""

    id: str
    role: str
    app: str | None = Field(description="Its small app; null for the whole installation.")
    created_at: Instant | None = Field(description="Null if it cannot be read.")
    expires_at: Instant | None
    last_used_at: Instant | None = Field(description="To the minute.")
    parent: str | None = Field(description="The token that opened it; null for a link of `up`.")
    browser: str | None = Field(description="What the browser calls itself.")


class Sessions(Listing[Session]):
    """The sessions that are open, the newest first."""


class NewLink(View):
    """A link that opens one session. It is shown once: only a hash of it is stored."""

    path: str = Field(description="The path of the link, below the address of the dashboard.")
    role: Role
    app: str | None = Field(description="Its small app; null for the whole installation.")


def open_session(installation: Installation, bearer: Bearer, browser: str) -> str | None:
    """Open a session for the bearer of a token or a link; return its secret, kept nowhere.

    Return None if the link was used meanwhile. Raises Refused for a role that may not look.
    """
    if Permission.READ not in PERMITS[bearer.role]:
        raise Refused(f"a token of the role {bearer.role} opens no pages; use another token")
    is_link = bearer.kind is TokenKind.LINK
    actor = f"{bearer.kind} {bearer.token_id}"
    wanted = Wanted(
        bearer.role,
        bearer.small_app_id,
        timedelta(hours=installation.settings.web.session_hours),
        actor,
        TokenKind.SESSION,
        bearer.parent if is_link else bearer.token_id,
        visible_line(browser)[:LONGEST_BROWSER],
    )
    with installation.engine.begin() as connection:
        if is_link and not tokens.use_up(connection, bearer.token_id):
            return None
        id, text = tokens.create(connection, wanted)
        audit.write(
            connection,
            small_app_id=bearer.small_app_id,
            actor=actor,
            verb="session.open",
            objects={id: {"role": bearer.role}},
        )
    return text


def make_link(installation: Installation, role: Role) -> NewLink:
    """Make a link for the request's small app if it is bound to one, else for the installation."""
    app = installation.small_app if installation.is_bound else None
    app_id = None if app is None else app.id
    wanted = Wanted(role, app_id, LINK_LIFE, installation.actor, TokenKind.LINK)
    with installation.engine.begin() as connection:
        id, text = tokens.create(connection, wanted)
        audit.write(
            connection,
            small_app_id=app_id,
            actor=installation.actor,
            verb="link.create",
            objects={id: {"role": role}},
        )
    return NewLink(path=f"/sign-in/{text}", role=role, app=None if app is None else app.name)


def list_sessions(installation: Installation, of_token: str | None = None) -> Sessions:
    """Return the open sessions of the request's scope, or those that one token opened."""
    with reading(installation.engine) as connection:
        found = tokens.open_sessions(connection, installation.scope, of_token)
    return Sessions(
        tuple(Session(**{key: row[key] for key in Session.model_fields}) for row in found)
    )


def end_session(installation: Installation, id: str) -> None:
    """End a session of the request's scope, at once. Raises NotFound."""
    with installation.engine.begin() as connection:
        app_id = tokens.revoke(connection, id, installation.scope, TokenKind.SESSION)
        audit.write(
            connection,
            small_app_id=app_id,
            actor=installation.actor,
            verb="session.end",
            objects={id: None},
        )
