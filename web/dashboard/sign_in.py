"""The pages that open and close a session."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from models.errors import Refused
from models.roles import Permission, TokenKind
from services import tokens
from services.installation import Installation
from services.tokens import sessions
from web.access import authenticated
from web.dashboard.rendering import redirect, render
from web.dashboard.session import (
    Form,
    Visitor,
    bearer_by_session,
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


@router.get("/sign-in")
def sign_in_page(request: Request) -> Response:
    """Show the form for a token; who has a session goes on at once."""
    following = own_path(request.query_params.get(NEXT, "/"))
    if bearer_by_session(request):
        return redirect(request, following)
    return _form(request, following)


@router.post("/sign-in")
def sign_in(request: Request, form: SentForm) -> Response:
    """Open a session by a token."""
    refuse_foreign(request)
    following = own_path(form.get(NEXT, "/"))
    try:
        return _open(request, form.get("token", "").strip(), TokenKind.TOKEN, following)
    except Unauthorized:
        return _form(request, following, say("sign_in.wrong"), 401)
    except Refused as error:
        return _form(request, following, error.on_page, 403)


@router.get("/sign-in/{link}")
def link_page(request: Request, link: str) -> Response:
    """Show a button that uses the link: a program that only previews it does not."""
    return render(request, "sign_in_link.html", {"link": link})


@router.post("/sign-in/{link}")
def use_link(request: Request, link: str) -> Response:
    """Open a session by a link, once."""
    refuse_foreign(request)
    try:
        return _open(request, link, TokenKind.LINK, "/")
    except Unauthorized:
        return _form(request, "/", say("sign_in.used"), 401)


@router.post("/sign-out")
def sign_out(request: Request, visitor: Annotated[Visitor, changing(Permission.READ)]) -> Response:
    """End the session; whom a proxy names has none."""
    if visitor.session_id:
        tokens.revoke(visitor.opened, visitor.session_id)
    return forget(request, redirect(request, "/sign-in", say("sign_in.signed_out")))


def ask_to_sign_in(request: Request, _error: Exception) -> Response:
    """Answer a request without a session: sign in, and come back."""
    root = request.scope.get("root_path", "")
    place = f"{root}/sign-in?{NEXT}={quote(page_asked(request), safe='/')}"
    if is_fragment(request):
        return Response(status_code=401, headers={"HX-Redirect": place})
    return RedirectResponse(place, 303)


def _open(request: Request, text: str, kind: TokenKind, following: str) -> Response:
    bearer = authenticated(request, text, kind)
    opened: Installation = request.app.state.installation
    secret = sessions.open_session(opened, bearer)
    if secret is None:
        raise Unauthorized("the link was used")
    return remember(request, redirect(request, following), secret)


def _form(request: Request, following: str, error: str = "", status: int = 200) -> Response:
    values = {"following": following, "error": error, "person": person_by_proxy(request)}
    return render(request, "sign_in.html", values, status)
