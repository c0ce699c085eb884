"""The visitor of a page, and what they may do.

Their browser has a cookie that names a token, or a proxy names them.

Pages accept only the cookie, and the API only a bearer token: no page of another site can reach the
API by a visitor's cookie.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Request
from fastapi.responses import Response
from starlette.datastructures import ImmutableMultiDict

from models.errors import NotFound
from models.roles import PERMITS, Permission, Role
from models.store import bearers
from models.store.bearers import SIGNED_IN_FOR, Bearer
from models.store.schema import UnfitSchema
from runtime.database import DATABASE_AWAY
from runtime.visible import visible_line
from services.installation import Installation
from web.access import Access, declared, found_bearer, opened_for, require
from web.dashboard.texts import SIGNED_ON
from web.middleware import FROM_PROXY
from web.problems import BodyTooLarge, Forbidden, Unauthorized

COOKIE = "mb_session"
LARGEST_FORM = 2**20
MOST_FIELDS = 10_000
LONGEST_PATH = 2_000
LONGEST_NAME = 200
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class SignInNeeded(Unauthorized):
    """The browser is not signed in."""


VISITORS = [role for role in Role if Permission.READ in PERMITS[role]]
# The fields of a form, as a browser sends them: `get` returns the last value of one.
Form = ImmutableMultiDict[str, str]


@dataclass(frozen=True)
class Visitor:
    """The person at the browser.

    `opened` is the part of the installation that the page shows, perhaps of one small app; `whole`
    is all that the visitor may see.
    """

    opened: Installation
    whole: Installation
    role: Role
    # The small app that the visitor is bound to; None for the whole installation.
    app_name: str | None
    # False for a person whom a proxy names with each request.
    is_signed_in: bool
    # The fields of a change's form.
    form: Form = field(default_factory=Form)

    def may(self, permission: str) -> bool:
        """Return whether the role permits something: `operate`, `edit`."""
        return Permission(permission) in PERMITS[self.role]


def viewing(permission: Permission = Permission.READ, *, is_of_installation: bool = False) -> Any:
    """Return the dependency of a page: its Visitor.

    A page below `/apps/{app}/` shows that small app, another the one of `?app=`, or all. A visitor
    of one small app cannot open a page that is of the installation.
    """

    def resolve(request: Request) -> Visitor:
        return _visitor(request, permission, is_of_installation)

    return declared(resolve, Access(permission, is_of_installation))


def changing(permission: Permission, *, is_of_installation: bool = False) -> Any:
    """Return the dependency of a change: its Visitor, with the form that was sent.

    Refuses what a page of another site sends, and to a visitor of one small app what is of the
    installation.
    """

    def permitted(request: Request) -> Visitor:
        refuse_foreign(request)
        return _visitor(request, permission, is_of_installation)

    async def resolve(request: Request, visitor: Annotated[Visitor, Depends(permitted)]) -> Visitor:
        # Read only now: a request without permission sends its body in vain.
        visitor = request.state.visitor = replace(visitor, form=await read_form(request))
        return visitor

    return declared(resolve, Access(permission, is_of_installation))


Viewer = Annotated[Visitor, viewing()]
Operator = Annotated[Visitor, changing(Permission.OPERATE)]
Editor = Annotated[Visitor, changing(Permission.EDIT)]


async def read_form(request: Request) -> Form:
    """Return the form that a request sends; raises BodyTooLarge."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_FORM:
            raise BodyTooLarge("the form is larger than 1 MiB; send less at once")
    text = body.decode("utf-8", "replace")
    try:
        return Form(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise BodyTooLarge(f"the form has more than {MOST_FIELDS} fields") from None


def refuse_foreign(request: Request) -> None:
    """Raise Forbidden for a change that no page of ours sends.

    A browser names the sender in `Sec-Fetch-Site`; an old one, or one that came by plain HTTP, in
    `Origin` or `Referer`.
    """
    headers = request.headers
    site = headers.get("Sec-Fetch-Site")
    if site in {"same-origin", "none"}:
        return
    if site is not None:
        raise Forbidden("the change comes from a page of another site")
    sender = headers.get("Origin") or headers.get("Referer")
    if not sender:
        raise Forbidden("the browser does not name the page that sends the change; use another one")
    if _origin(sender) not in _own_origins(request):
        named = visible_line(_origin(sender))[:LONGEST_NAME]
        raise Forbidden(
            f"the change comes from a page of {named}; if that is this site, set "
            "SCHED_WEB_PUBLIC_URL to its address"
        )


def _own_origins(request: Request) -> set[str]:
    """Return where a browser finds our pages: where it asked, and the address that is set."""
    public: str = request.app.state.installation.settings.web.public_url
    asked = f"{request.url.scheme}://{request.headers.get('Host')}"
    return {_origin(one) for one in (asked, public) if one}


def _origin(url: str) -> str:
    """Return the scheme, host and port of a URL as a browser writes them in `Origin`."""
    scheme, mark, rest = url.lower().partition("://")
    host = rest.split("/", 1)[0].removesuffix(DEFAULT_PORTS.get(scheme, ""))
    return scheme + mark + host


def person_by_proxy(request: Request) -> str:
    """Return the name of the person whom a configured proxy names; empty from others."""
    return _said_by_proxy(request, request.app.state.installation.settings.web.sso_header)


def _said_by_proxy(request: Request, header: str) -> str:
    """Return what a proxy says in a header; empty from others.

    Empty if the header is there twice: one could be the proxy's, and one the client's.
    """
    said = request.headers.getlist(header) if header else []
    if len(said) != 1 or not request.scope.get(FROM_PROXY, False):
        return ""
    return visible_line(said[0].strip())[:LONGEST_NAME]


def bearer_by_cookie(request: Request) -> Bearer | None:
    """Return the bearer of the token by which a browser is signed in."""
    cookie = request.cookies.get(COOKIE)
    return found_bearer(request, bearers.bearer_by_cookie, cookie) if cookie else None


def _bearer_by_proxy(request: Request) -> Bearer | None:
    name = person_by_proxy(request)
    if not name:
        return None
    said = _said_by_proxy(request, request.app.state.installation.settings.web.sso_role_header)
    actor, its = f"{SIGNED_ON}{name}", found_bearer(request, bearers.bearer_by_name, name)
    # An admin of one small app takes no role away from people of the installation.
    if its is not None and (its.app_name is None or not said):
        return replace(its, token_id="", actor=actor)
    return Bearer("", role_of(said), None, actor)


def role_of(text: str) -> Role:
    """Return the role of a person that a text names; that of a viewer for any other text."""
    return Role(text) if text in VISITORS else Role.VIEWER


def own_path(text: str) -> str:
    """Return a path of ours to continue to; `/` for what a browser could read as another site."""
    is_ours = (
        text.startswith("/")
        and not text.startswith("//")
        and "\\" not in text
        and text.isprintable()
        and len(text) <= LONGEST_PATH
    )
    return text if is_ours else "/"


def remember(request: Request, response: Response, cookie: str) -> Response:
    """Let the browser keep that it is signed in."""
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=int(SIGNED_IN_FOR.total_seconds()),
        path=_cookie_path(request),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


def forget(request: Request, response: Response) -> Response:
    """Let the browser drop its cookie."""
    response.delete_cookie(COOKIE, path=_cookie_path(request), httponly=True, samesite="lax")
    return response


def is_fragment(request: Request) -> bool:
    """Return whether a script asks for a part of a page."""
    return "HX-Request" in request.headers


def _visitor(request: Request, permission: Permission, is_of_installation: bool = False) -> Visitor:
    bearer = bearer_by_cookie(request) or _bearer_by_proxy(request)
    if bearer is None:
        raise SignInNeeded("sign in first")
    app = request.path_params.get("app") or request.query_params.get("app") or None
    whole = opened_for(request, bearer, bearer.app_name)
    visitor = Visitor(whole, whole, bearer.role, bearer.app_name, bool(bearer.token_id))
    # For the frame of the page, even if this request ends with an error.
    request.state.visitor = visitor
    require(bearer, permission)
    if is_of_installation and bearer.app_name is not None:
        raise Forbidden("this page needs a token of the installation, not of one small app")
    return replace(visitor, opened=opened_for(request, bearer, app))


def visitor_or_none(request: Request) -> Visitor | None:
    """Return the visitor of a request for no page of ours, for the frame of the answer."""
    with suppress(SignInNeeded, Forbidden, NotFound, UnfitSchema, *DATABASE_AWAY):
        return _visitor(request, Permission.READ, False)
    return None


def page_asked(request: Request) -> str:
    """Return the path of the page that is, or was, open in the browser."""
    headers = request.headers
    asked = str(request.url)
    if request.method != "GET" or is_fragment(request):
        asked = headers.get("HX-Current-URL") or headers.get("Referer") or "/"
    path = "/"
    with suppress(ValueError):
        parts = urlsplit(asked)
        path = parts.path.removeprefix(request.scope.get("root_path", ""))
        path += f"?{parts.query}" if parts.query else ""
    return own_path(path)


def _cookie_path(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"
