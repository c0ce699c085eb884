"""The first page: whether all is well."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from views.overview import overview_of
from web.dashboard import drawing
from web.dashboard.rendering import Page, render
from web.dashboard.session import Visitor, viewing

router = APIRouter(include_in_schema=False)
Viewer = Annotated[Visitor, viewing()]


@router.get("/")
def overview(request: Request, visitor: Viewer) -> HTMLResponse:
    """Show the overview; htmx asks for its live part alone."""
    shown = overview_of(visitor.opened)
    template = "overview_live.html" if "hx-request" in request.headers else "overview.html"
    drawn = drawing.timeline(shown.timeline, Page(request).zone)
    return render(request, template, {"visitor": visitor, "shown": shown, "drawn": drawn})
