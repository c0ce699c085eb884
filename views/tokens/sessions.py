"""Open, list and end the sessions of the dashboard, and make links that open one."""

from datetime import timedelta

import sqlalchemy as sa
from pydantic import Field

from models.errors import Refused
from models.roles import PERMITS, Permission, Role, TokenKind
from models.store import audit, tenants, tokens
from models.store.tokens import SIGNED_ON, Bearer, TokenRequest
from runtime.database import reading
from runtime.sections.web import WebSettings
from runtime.visible import visible_line
from views.installation import Installation
from views.tokens import Token
from views.tokens.seats import Person, Seat, seats_of
from views.view import Listing, View

LINK_LIFE = timedelta(hours=1)
LONGEST_BROWSER = 60
# By what stands in its User-Agent, the most special first: most name Chrome or Safari too.
BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iOS",
    "iPad": "iPadOS",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


class Session(Token):
    """A session of the dashboard that is open: a token in a browser's cookie."""

    created_by: str = Field(description="What opened it: a token, a link, or `sso` and a name.")
    parent: str | None = Field(description="The token that it ends with; null without one.")
    browser: str | None = Field(description="What the browser calls itself.")


class Sessions(Listing[Session]):
    """The sessions that are open, the newest first."""


class NewLink(View):
    """A link that opens one session. It is shown once: only a hash of it is stored."""

    url: str = Field(description="The link; a path alone if the address is not known.")
    role: Role
    app: str | None = Field(description="Its small app; null for the whole installation.")


def open_session(installation: Installation, bearer: Bearer, user_agent: str) -> str | None:
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
        browser_in(user_agent),
        bearer.name,
    )
    with installation.engine.begin() as connection:
        if is_link and not tokens.use_up(connection, bearer.token_id):
            return None
        return _open(connection, wanted)


def open_for(installation: Installation, person: Person, seat: Seat, user_agent: str) -> str:
    """Open a session for a person whom a proxy names; return its secret, kept nowhere.

    Raises NotFound if the small app of the seat does not exist.
    """
    with installation.engine.begin() as connection:
        app = None if seat.app is None else tenants.get(connection, seat.app)
        wanted = TokenRequest(
            seat.role,
            None if app is None else app.id,
            _life(installation),
            f"{SIGNED_ON}{person.name}",
            TokenKind.SESSION,
            browser=browser_in(user_agent),
        )
        return _open(connection, wanted)


def still_named(installation: Installation, bearer: Bearer, person: Person | None) -> bool:
    """Return whether a proxy still names the person whose session it is, for the same role.

    A session that a token or a link opened needs no name.
    """
    if not bearer.is_signed_on:
        return True
    if person is None or bearer.author != f"{SIGNED_ON}{person.name}":
        return False
    return Seat(bearer.role, bearer.app_name) in seats_of(person, installation.settings.web)


def make_link(installation: Installation, role: Role) -> NewLink:
    """Make a link for the request's small app if it is bound to one, else for the installation.

    Raises Refused for a role that may not look.
    """
    _may_look(role)
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


def list_sessions(installation: Installation) -> Sessions:
    """Return the open sessions of the request's scope."""
    with reading(installation.engine) as connection:
        found = tokens.open_sessions(connection, installation.scope)
    return Sessions(tuple(Session.of(row) for row in found))


def browser_in(user_agent: str) -> str:
    """Return what a person calls a browser: `Firefox on Linux`; the header's start if unknown."""
    browser = next((name for mark, name in BROWSERS.items() if mark in user_agent), None)
    system = next((name for mark, name in SYSTEMS.items() if mark in user_agent), None)
    if browser is None:
        return visible_line(user_agent)[:LONGEST_BROWSER]
    return browser if system is None else f"{browser} on {system}"


def _open(connection: sa.Connection, wanted: TokenRequest) -> str:
    tokens.prune(connection)
    id, text = tokens.create(connection, wanted)
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
