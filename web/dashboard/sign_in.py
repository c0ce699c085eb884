"""The pages that open and close a session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from models.errors import NotFound, Refused
from models.roles import Permission, TokenKind
from views import tokens
from views.installation import Installation
from views.tokens import sessions
from views.tokens.seats import Person, only_seat, seats_of
from web.access import authenticated, bearer_of
from web.dashboard import drafts
from web.dashboard.rendering import render, see
from web.dashboard.session import (
    COOKIE,
    Form,
    Visitor,
    changing,
    forget,
    is_fragment,
    own_path,
    page_asked,
    person_by_proxy,
    read_form,
    refuse_foreign,
    remember,
)
from web.dashboard.texts import say
from web.problems import Unauthorized

router = APIRouter(include_in_schema=False)
SentForm = Annotated[Form, Depends(read_form)]
NEXT = "next"
# Which of several small apps the session of a person is for; empty for the installation.
SEAT = "app"


@router.get("/sign-in")
def sign_in_page(request: Request) -> Response:
    """Show the form for a token; a person known by a session or a proxy goes on at once."""
    asked = request.query_params.get(NEXT)
    following = own_path(asked or "/")
    opened: Installation = request.app.state.installation
    person = person_by_proxy(request)
    bearer = bearer_of(request, request.cookies.get(COOKIE, ""), TokenKind.SESSION)
    chosen = request.query_params.get(SEAT)
    held = "" if bearer is None else bearer.app_name or ""
    is_held = bearer is not None and sessions.still_named(opened, bearer, person)
    if is_held and chosen in {None, held}:
        return see(request, following)
    # After signing out, a person is asked, and not signed in again.
    if person is None or asked is None:
        return _form(request, Following(following))
    return _take_seat(request, person, Following(following), chosen)


@router.post("/sign-in")
def sign_in(request: Request, form: SentForm) -> Response:
    """Open a session by a token."""
    refuse_foreign(request)
    asked = Following(own_path(form.one(NEXT, "/")), form.one("draft_of"), drafts.kept(form))
    try:
        return _open(request, form.one("token").strip(), TokenKind.TOKEN, asked)
    except Unauthorized:
        return _form(request, asked, say("sign_in.wrong"), 401)
    except Refused as error:
        return _form(request, asked, error.on_page, 403)


@router.get("/sign-in/{link}")
def link_page(request: Request, link: str) -> Response:
    """Show a button that uses the link: a program that only previews it does not."""
    return render(request, "sign_in_link.html", {"link": link})


@router.post("/sign-in/{link}")
def use_link(request: Request, link: str) -> Response:
    """Open a session by a link, once."""
    refuse_foreign(request)
    try:
        return _open(request, link, TokenKind.LINK, Following())
    except Unauthorized:
        return _form(request, Following(), say("sign_in.used"), 401)


@router.post("/sign-out")
def sign_out(request: Request, visitor: Annotated[Visitor, changing(Permission.READ)]) -> Response:
    """End the session."""
    tokens.revoke(visitor.opened, visitor.session_id)
    return forget(request, see(request, "/sign-in", say("sign_in.signed_out")))


async def ask_to_sign_in(request: Request, _error: Exception) -> Response:
    """Answer a request without a session: sign in, and come back, with the draft that it sends."""
    following = page_asked(request)
    if app := drafts.app_of(request):
        fields = drafts.kept(await read_form(request))
        if fields:
            return _form(request, Following(following, app, fields), say("draft.sign_in"), 401)
    root = request.scope.get("root_path", "")
    place = f"{root}/sign-in?{NEXT}={quote(following, safe='/')}"
    if is_fragment(request):
        return Response(status_code=401, headers={"HX-Redirect": place})
    return RedirectResponse(place, 303)


@dataclass(frozen=True, slots=True)
class Following:
    """Where to go on after signing in: a page, or a draft for a small app."""

    following: str = "/"
    app: str = ""
    draft: Mapping[str, str] = field(default_factory=dict)


def _take_seat(request: Request, person: Person, asked: Following, chosen: str | None) -> Response:
    """Open the session of a person whom a proxy names, or ask which one."""
    opened: Installation = request.app.state.installation
    seats = seats_of(person, opened.settings.web)
    if not seats:
        return _form(request, asked, say("sign_in.no_group", name=person.name), 403)
    seat = only_seat(seats)
    if chosen is not None:
        seat = next((one for one in seats if (one.app or "") == chosen), None)
    if seat is None:
        return _form(request, asked)
    try:
        secret = sessions.open_for(opened, person, seat, request.headers.get("User-Agent", ""))
    except NotFound as error:
        return _form(request, asked, error.on_page, 403)
    return remember(request, see(request, asked.following), secret)


def _open(request: Request, text: str, kind: TokenKind, asked: Following) -> Response:
    bearer = authenticated(request, text, kind)
    opened: Installation = request.app.state.installation
    browser = request.headers.get("User-Agent", "")
    secret = sessions.open_session(opened, bearer, browser)
    if secret is None:
        raise Unauthorized("the link was used")
    if asked.app and asked.draft:
        page = drafts.offer(request, asked.app, asked.draft)
        return remember(request, page, secret)
    return remember(request, see(request, asked.following), secret)


def _form(request: Request, asked: Following, error: str = "", status: int = 200) -> Response:
    person = person_by_proxy(request)
    web = request.app.state.installation.settings.web
    seats = () if person is None else seats_of(person, web)
    values = {"asked": asked, "error": error, "person": person, "seats": seats}
    return render(request, "sign_in.html", values, status)
