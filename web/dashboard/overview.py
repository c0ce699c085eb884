"""The first page: whether all is well."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from services.overview import SHOWN, Overview
from services.verdict import WORDS
from web.cache import TtlCache
from web.dashboard import drawing
from web.dashboard.rendering import Page, render
from web.dashboard.session import Viewer, is_fragment

router = APIRouter(include_in_schema=False)
# A page that is opened is at most so old; one that stays open shows an older one, so that many open
# pages ask the database no more often than one.
FRESH_S = 2.0
KEPT_S = 15.0


@router.get("/")
def overview(request: Request, visitor: Viewer) -> HTMLResponse:
    """Show the overview; htmx asks only for its live part."""
    is_part = is_fragment(request)
    overviews: TtlCache[Overview] = request.app.state.overviews
    shown = overviews.of(visitor.opened, KEPT_S if is_part else FRESH_S)
    drawn = drawing.timeline(shown.timeline, Page(request).zone)
    template = "overview_live.html" if is_part else "overview.html"
    troubles = [one for one in shown.verdict.findings if one.uid is not None]
    values = {
        "shown": shown,
        "drawn": drawn,
        "troubles": troubles[:SHOWN],
        "words": WORDS,
    }
    return render(request, template, values)
