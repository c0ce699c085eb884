"""The search everywhere: what a text may mean among runs, actions, tasks, owners and users."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from models.errors import Refused
from views import operations
from views.search import ERRORS_BACK, LONGEST_TEXT, MOST_FOUND, search
from web.dashboard.rendering import Page, render
from web.dashboard.session import Viewer, is_fragment

router = APIRouter(include_in_schema=False)


@router.get("/search")
def search_everywhere(request: Request, visitor: Viewer, q: str = "") -> Response:
    """Show what a text finds; htmx asks only for the results. The id of a run leads to it."""
    opened, text = visitor.opened, q.strip()
    is_part = is_fragment(request)
    id = None if is_part else operations.with_id(opened, text)
    if id is not None:
        return RedirectResponse(Page(request).url(f"/operations/{id}"), 303)
    found, fault = None, ""
    try:
        found = search(opened, text) if text else None
    except Refused as error:
        fault = error.on_page
    values = {
        "q": q,
        "found": found,
        "fault": fault,
        "most": MOST_FOUND,
        "longest": LONGEST_TEXT,
        "days": ERRORS_BACK.days,
        "app": opened.app_name if opened.is_bound else "",
    }
    template = "search_found.html" if is_part else "search.html"
    return render(request, template, values, 422 if fault and not is_part else 200)
