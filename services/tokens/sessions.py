"""Open the sessions of the dashboard, and make links that open one."""

from datetime import timedelta

import sqlalchemy as sa
from pydantic import Field

from models.errors import Refused
from models.roles import PERMITS, Permission, Role, TokenKind
from models.store import audit, tokens
from models.store.tokens import Bearer, TokenRequest
from runtime.plug_ins import plug_ins
from runtime.sections.web import WebSettings
from services.installation import Installation
from services.view import View

LINK_LIFE = timedelta(hours=1)


class NewLink(View):
    """A link that opens one session. It is shown once: only a hash of it is stored."""

    url: str = Field(description="The link; a path alone if the address is not known.")
    role: Role
    app: str | None = Field(description="Its small app; null for the whole installation.")


def open_session(installation: Installation, bearer: Bearer) -> str | None:
    """Open a session for the bearer of a token or a link; return its secret, kept nowhere.

    Return None if the link was used meanwhile. Raises Refused for a role that may not look.
    """
    _may_look(bearer.role)
    is_link = bearer.kind is TokenKind.LINK
    wanted = TokenRequest(
        bearer.role,
        bearer.small_app_id,
        _life(installation),
        bearer.actor,
        TokenKind.SESSION,
        bearer.parent if is_link else bearer.token_id,
        bearer.name,
    )
    with installation.engine.begin() as connection:
        if is_link and not tokens.use_up(connection, bearer.token_id):
            return None
        return _open(connection, wanted)


def make_link(installation: Installation, role: Role) -> NewLink:
    """Make a link for the request's small app if it is bound to one, else for the installation.

    Raises Refused for a role that may not look, and if no plug-in has pages to sign in to.
    """
    _may_look(role)
    if not any(one.signs_in for one in plug_ins()):
        raise Refused("links open the dashboard, a plug-in that is not installed")
    app = installation.small_app if installation.is_bound else None
    app_id = None if app is None else app.id
    # A link from this machine is of the account that made it.
    name = installation.actor if installation.bearer is None else None
    wanted = TokenRequest(role, app_id, LINK_LIFE, installation.actor, TokenKind.LINK, name=name)
    with installation.engine.begin() as connection:
        id, text = tokens.create(connection, wanted)
        installation.audit(connection, app_id, "link.create", {id: {"role": role}})
    url = f"{_address(installation.settings.web)}/sign-in/{text}"
    return NewLink(url=url, role=role, app=None if app is None else app.name)


def _open(connection: sa.Connection, wanted: TokenRequest) -> str:
    id, text = tokens.create(connection, wanted)
    tokens.prune(connection, wanted.parent)
    audit.write(
        connection,
        small_app_id=wanted.small_app_id,
        actor=wanted.author,
        verb="session.open",
        objects={id: {"role": wanted.role}},
    )
    return text


def _life(installation: Installation) -> timedelta:
    return timedelta(hours=installation.settings.web.session_hours)


def _may_look(role: Role) -> None:
    if Permission.READ not in PERMITS[role]:
        raise Refused(f"a token of the role {role} opens no pages; use another role")


def _address(settings: WebSettings) -> str:
    """Return where a browser of this machine finds the dashboard; only the path if unknown."""
    has_address = settings.port and not settings.root_path
    return settings.local_url if has_address else settings.root_path
