"""The first page: whether all is well."""

from collections.abc import Iterator

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from models.store.tenants import GIVEN_OWNER
from runtime.plug_ins import plug_ins
from services.overview import Overview
from services.verdict import WORDS
from web.cache import TtlCache
from web.dashboard import drawing
from web.dashboard.drawing.bars import bars, hours
from web.dashboard.rendering import Page, render
from web.dashboard.session import Viewer, is_fragment

router = APIRouter(include_in_schema=False)
# A page that is opened is at most so old; one that stays open shows an older one, so that many open
# pages ask the database no more often than one.
FRESH_S = 2.0
KEPT_S = 15.0
# Actions with troubles above the grid, which has more of them.
MOST_TROUBLES = 5
# What an installation begins with, where nothing ran yet.
BEGIN = {
    "create": "minutebook init && minutebook action add hello.yaml",
    "follow": "import minutebook; minutebook.follow(app)",
}
IMPORT = (
    "python -m minutebook export -A app -o beat.json && minutebook import beat beat.json --apply"
)


@router.get("/")
def overview(request: Request, visitor: Viewer, view: str = "") -> HTMLResponse:
    """Show the overview, with bars along the time if asked; htmx asks only for its live part."""
    is_part, zone = is_fragment(request), Page(request).zone
    overviews: TtlCache[Overview] = request.app.state.overviews
    shown = overviews.of(visitor.opened, KEPT_S if is_part else FRESH_S, view == "time")
    is_new = all(one.owner == GIVEN_OWNER for one in shown.actions)
    values = {
        "shown": shown,
        "drawn": shown.timeline and drawing.timeline(shown.timeline, zone),
        "bars": {one.uid: bars(one.runs, zone) for one in shown.actions},
        "hours": hours(shown.figures.hours, zone),
        "troubles": [one for one in shown.verdict.findings if one.uid is not None],
        "most": MOST_TROUBLES,
        "words": WORDS,
        "ways_to_begin": [*BEGIN.items(), *_imports()] if is_new else [],
    }
    return render(request, "overview_live.html" if is_part else "overview.html", values)


def _imports() -> Iterator[tuple[str, str]]:
    """Yield the way in from celery beat, if the plug-in that imports is installed."""
    if any("import" in one.commands for one in plug_ins()):
        yield "import", IMPORT
