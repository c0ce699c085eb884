"""Sign browsers in to the dashboard by a token, and make links that do so once."""

from datetime import timedelta

import sqlalchemy as sa
from pydantic import Field

from models.errors import Refused
from models.roles import PERMITS, Permission, Role, TokenKind
from models.store import bearers, tokens
from models.store.bearers import Bearer
from models.store.tokens import TokenRequest
from runtime.database import reading
from runtime.plug_ins import plug_ins
from runtime.sections.web import WebSettings
from services.installation import Installation
from services.view import View

LINK_LIFE = timedelta(hours=1)


class NewLink(View):
    """A link that signs one browser in. It is shown once: only a hash of it is stored."""

    url: str = Field(description="The link; a path alone if the address is not known.")
    role: Role
    app: str | None = Field(description="Its small app; null for the whole installation.")


def sign_in(installation: Installation, bearer: Bearer) -> str:
    """Return the cookie for the bearer of a token, and write nothing.

    Raises Refused for a role that may not look.
    """
    _may_look(bearer.role)
    with reading(installation.engine) as connection:
        return bearers.cookie_of(connection, bearer.token_id)


def use_link(installation: Installation, text: str) -> str | None:
    """Use a link up, and return its cookie; None if it is unknown, used, expired or revoked."""
    with installation.engine.begin() as connection:
        id = bearers.use_link(connection, text)
        return None if id is None else bearers.cookie_of(connection, id)


def make_link(installation: Installation, role: Role) -> NewLink:
    """Make a link for the request's small app if it is bound to one, else for the installation.

    Raises Refused for a role that may not look, and if no plug-in has pages to sign in to.
    """
    app = installation.small_app if installation.is_bound else None
    app_id, app_name = (None, None) if app is None else (app.id, app.name)
    # Of the account that makes it.
    name = installation.actor
    wanted = TokenRequest(role, app_id, LINK_LIFE, name, TokenKind.LINK, name=name)
    with installation.engine.begin() as connection:
        return _make(installation, connection, wanted, app_name)


def link_of(installation: Installation, id: str) -> NewLink:
    """Make a link that signs in by a token: it ends with that one. Raises as `make_link` does."""
    with installation.engine.begin() as connection:
        of = tokens.locked(connection, id, installation.scope)
        its, role, author = of["small_app_id"], Role(of["role"]), installation.actor
        wanted = TokenRequest(role, its, LINK_LIFE, author, TokenKind.LINK, id, of["name"])
        return _make(installation, connection, wanted, of["app"])


def _make(
    installation: Installation, connection: sa.Connection, wanted: TokenRequest, app: str | None
) -> NewLink:
    _may_look(wanted.role)
    if not any(one.signs_in for one in plug_ins()):
        raise Refused("links open the dashboard, a plug-in that is not installed")
    tokens.prune(connection)
    id, text = tokens.create(connection, wanted)
    made = {id: {"role": wanted.role}}
    installation.audit(connection, wanted.small_app_id, "link.create", made)
    url = f"{_address(installation.settings.web)}/sign-in/{text}"
    return NewLink(url=url, role=wanted.role, app=app)


def _may_look(role: Role) -> None:
    if Permission.READ not in PERMITS[role]:
        raise Refused(f"a token of the role {role} opens no pages; use another role")


def _address(settings: WebSettings) -> str:
    """Return where a browser of this machine finds the dashboard; only the path if unknown."""
    has_address = settings.port and not settings.root_path
    return settings.local_url if has_address else settings.root_path
