"""The page that invites people, and lists and revokes their tokens and those of programs."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from models.roles import Permission
from services import tokens
from services.apps import app_names
from services.installation import Installation
from services.lookup import unknown_app
from services.tokens import sessions
from web.dashboard.rendering import Page, confirm, redirect, render
from web.dashboard.session import VISITORS, Visitor, changing, role_of, viewing
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
MOST_TOKENS = 100
# How long an invitation may last; without an end, until it is revoked.
LIVES = ("", "P7D", "P30D", "P90D", "P365D")
Admin = Annotated[Visitor, viewing(Permission.ADMINISTER)]
AdminOfChange = Annotated[Visitor, changing(Permission.ADMINISTER)]


@router.get("/invite")
def invite_page(request: Request, visitor: Admin, tokens_after: str | None = None) -> HTMLResponse:
    """Show the form, and a page of the tokens."""
    return _page(request, visitor, after=tokens_after)


@router.post("/invite")
def invite(request: Request, visitor: AdminOfChange) -> HTMLResponse:
    """Make a token for a person and a link that signs in by it; show both, this once."""
    form, opened = visitor.form, _in_app(visitor)
    role, ends = role_of(form.get("role", "")), form.get("ends", "") or None
    made = tokens.create(opened, role, ends, form.get("name", ""))
    link = sessions.link_of(opened, made.id)
    return _page(request, visitor, link=link, token=made.token)


@router.post("/tokens/{id}/link")
def new_link(request: Request, id: str, visitor: AdminOfChange) -> HTMLResponse:
    """Make another link that signs in by a token."""
    return _page(request, visitor, link=sessions.link_of(visitor.opened, id))


@router.post("/tokens/{id}/revoke")
def revoke_token(request: Request, id: str, visitor: AdminOfChange) -> Response:
    """Revoke a token."""
    if "sure" not in visitor.form:
        return confirm(request, say("invite.asks", id=id), "/invite")
    tokens.revoke(visitor.opened, id)
    return redirect(request, "/invite", say("invite.revoked"))


def _in_app(visitor: Visitor) -> Installation:
    """Return the part of the installation that an invitation opens. Raises NotFound."""
    whole, app = visitor.whole, visitor.form.get("app", "").strip()
    if not app:
        return whole
    if not whole.may_see(app):
        raise unknown_app(app)
    return whole.for_request(app, is_bound=True, bearer=whole.actor)


def _page(
    request: Request,
    visitor: Visitor,
    *,
    link: sessions.NewLink | None = None,
    token: str = "",
    after: str | None = None,
) -> HTMLResponse:
    values = {
        "link": "" if link is None else _url(request, link),
        "token": token,
        "tokens": tokens.list_tokens(visitor.opened, MOST_TOKENS, after),
        "apps": app_names(visitor.whole),
        "roles": VISITORS,
        "lives": LIVES,
    }
    return render(request, "invite.html", values)


def _url(request: Request, link: sessions.NewLink) -> str:
    """Return a link at the address at which people find the dashboard."""
    page, public = Page(request), request.app.state.installation.settings.web.public_url
    return f"{public or page.origin + page.root}/sign-in/{link.url.rpartition('/')[2]}"
