"""The pages on which people sign in and out."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from models.errors import Refused
from models.roles import Permission
from services.tokens import sessions
from web.access import authenticated
from web.dashboard.rendering import redirect, render
from web.dashboard.session import (
    Form,
    Visitor,
    bearer_by_cookie,
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
    """Show the form for a token; a browser that is signed in goes on at once."""
    following = own_path(request.query_params.get(NEXT, "/"))
    if bearer_by_cookie(request):
        return redirect(request, following)
    return _form(request, following)


@router.post("/sign-in")
def sign_in(request: Request, form: SentForm) -> Response:
    """Sign in by a token."""
    refuse_foreign(request)
    following = own_path(form.get(NEXT, "/"))
    try:
        bearer = authenticated(request, form.get("token", "").strip())
        cookie = sessions.sign_in(request.app.state.installation, bearer)
    except Unauthorized:
        return _form(request, following, say("sign_in.wrong"), 401)
    except Refused as error:
        return _form(request, following, error.on_page, 403)
    return remember(request, redirect(request, following), cookie)


@router.get("/sign-in/{link}")
def link_page(request: Request, link: str) -> Response:
    """Show a button that uses the link: a program that only previews it does not."""
    return render(request, "sign_in_link.html", {"link": link})


@router.post("/sign-in/{link}")
def use_link(request: Request, link: str) -> Response:
    """Sign in by a link, once."""
    refuse_foreign(request)
    cookie = sessions.use_link(request.app.state.installation, link)
    if cookie is None:
        return _form(request, "/", say("sign_in.used"), 401)
    return remember(request, redirect(request, "/"), cookie)


@router.post("/sign-out")
def sign_out(request: Request, _: Annotated[Visitor, changing(Permission.READ)]) -> Response:
    """Let the browser drop its cookie."""
    return forget(request, redirect(request, "/sign-in", say("sign_in.signed_out")))


def ask_to_sign_in(request: Request, _error: Exception) -> Response:
    """Answer a browser that is not signed in: sign in, and come back."""
    root = request.scope.get("root_path", "")
    place = f"{root}/sign-in?{NEXT}={quote(page_asked(request), safe='/')}"
    if is_fragment(request):
        return Response(status_code=401, headers={"HX-Redirect": place})
    return RedirectResponse(place, 303)


def _form(request: Request, following: str, error: str = "", status: int = 200) -> Response:
    values = {"following": following, "error": error, "person": person_by_proxy(request)}
    return render(request, "sign_in.html", values, status)
