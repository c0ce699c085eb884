"""The page of a small app for people without an account."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from web.api.public import HEADERS, status_for_all
from web.dashboard.endings import ending_of
from web.dashboard.rendering import render
from web.dashboard.session import is_fragment

router = APIRouter(include_in_schema=False)


@router.get("/status/{app}")
def show_public_status(request: Request, app: str) -> HTMLResponse:
    """Show how fresh a small app's data are; htmx asks again, more often while an update runs."""
    found = status_for_all(request, app)
    values = {"name": app, "shown": found, "ending": ending_of(found)}
    template = "public_part.html" if is_fragment(request) else "public.html"
    # The answer to htmx is another one.
    return render(request, template, values, headers={**HEADERS, "Vary": "HX-Request, Cookie"})
