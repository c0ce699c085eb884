"""The page of sessions: who is signed in, and which tokens there are."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response

from models.errors import NotFound, Refused
from models.roles import Permission
from views import tokens
from views.tokens import sessions
from views.tokens.sessions import Session
from web.dashboard.rendering import ZONES, ask, choose_zone, render, see
from web.dashboard.session import Viewer, Visitor, changing, forget
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
MOST_TOKENS = 100


@router.get("/sessions")
def sessions_page(request: Request, visitor: Viewer, tokens_after: str | None = None) -> Response:
    """List the sessions that the visitor may end, and for an admin a page of the tokens."""
    is_admin = visitor.may(Permission.ADMINISTER)
    values = {
        "sessions": _sessions_of(visitor),
        "zones": ZONES,
        "tokens": tokens.list_tokens(visitor.opened, MOST_TOKENS, tokens_after)
        if is_admin
        else None,
    }
    return render(request, "sessions.html", values)


@router.post("/zone")
def set_zone(request: Request, visitor: Annotated[Visitor, changing(Permission.READ)]) -> Response:
    """Show times in a zone from now on."""
    zone = visitor.form.one("zone").strip()
    answer = see(request, "/sessions", say("sessions.zone_chosen", zone=zone))
    if not choose_zone(request, answer, zone):
        raise Refused(say("sessions.unknown_zone", zone=zone))
    return answer


@router.post("/sessions/{id}/revoke")
def revoke_session(
    request: Request, id: str, visitor: Annotated[Visitor, changing(Permission.READ)]
) -> Response:
    """End a session that the visitor may end."""
    if id not in {one.id for one in _sessions_of(visitor)}:
        raise NotFound(f"no session has the id {id!r}; it may have ended")
    tokens.revoke(visitor.opened, id)
    if id == visitor.session_id:
        return forget(request, see(request, "/sign-in", say("sign_in.signed_out")))
    return see(request, "/sessions", say("sessions.ended"))


@router.post("/tokens/{id}/revoke")
def revoke_token(
    request: Request, id: str, visitor: Annotated[Visitor, changing(Permission.ADMINISTER)]
) -> Response:
    """Revoke a token, with the sessions that it opened."""
    if "sure" not in visitor.form:
        return ask(request, say("sessions.asks", id=id), "/sessions")
    tokens.revoke(visitor.opened, id)
    return see(request, "/sessions", say("sessions.revoked"))


def _sessions_of(visitor: Visitor) -> list[Session]:
    """Return all sessions of the scope for an admin, else those of the visitor's own token."""
    found = sessions.list_sessions(visitor.opened).root
    if visitor.may(Permission.ADMINISTER):
        return list(found)
    return [
        one
        for one in found
        if one.id == visitor.session_id
        or (one.parent is not None and one.parent == visitor.token_id)
    ]
