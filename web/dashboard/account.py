"""The page of the visitor: the zone of times, and for an admin the tokens."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response

from models.errors import Refused
from models.roles import Permission
from services import tokens
from web.dashboard.rendering import ZONES, choose_zone, confirm, redirect, render
from web.dashboard.session import Viewer, Visitor, changing
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
MOST_TOKENS = 100


@router.get("/account")
def account_page(request: Request, visitor: Viewer, tokens_after: str | None = None) -> Response:
    """Show the role and the zone of the visitor, and to an admin a page of the tokens."""
    is_admin = visitor.may(Permission.ADMINISTER)
    values = {
        "zones": ZONES,
        "tokens": tokens.list_tokens(visitor.opened, MOST_TOKENS, tokens_after)
        if is_admin
        else None,
    }
    return render(request, "account.html", values)


@router.post("/zone")
def set_zone(request: Request, visitor: Annotated[Visitor, changing(Permission.READ)]) -> Response:
    """Show times in a zone from now on."""
    zone = visitor.form.get("zone", "").strip()
    answer = redirect(request, "/account", say("account.zone_chosen", zone=zone))
    if not choose_zone(request, answer, zone):
        raise Refused(say("account.unknown_zone", zone=zone))
    return answer


@router.post("/tokens/{id}/revoke")
def revoke_token(
    request: Request, id: str, visitor: Annotated[Visitor, changing(Permission.ADMINISTER)]
) -> Response:
    """Revoke a token."""
    if "sure" not in visitor.form:
        return confirm(request, say("account.asks", id=id), "/account")
    tokens.revoke(visitor.opened, id)
    return redirect(request, "/account", say("account.revoked"))
