"""The page of the visitor: the zone of times."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response

from models.errors import Refused
from models.roles import Permission
from web.dashboard.rendering import ZONES, choose_zone, redirect, render
from web.dashboard.session import Viewer, Visitor, changing
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)


@router.get("/account")
def account_page(request: Request, _: Viewer) -> Response:
    """Show the role and the zone of the visitor."""
    return render(request, "account.html", {"zones": ZONES})


@router.post("/zone")
def set_zone(request: Request, visitor: Annotated[Visitor, changing(Permission.READ)]) -> Response:
    """Show times in a zone from now on."""
    zone = visitor.form.get("zone", "").strip()
    answer = redirect(request, "/account", say("account.zone_chosen", zone=zone))
    if not choose_zone(request, answer, zone):
        raise Refused(say("account.unknown_zone", zone=zone))
    return answer
