"""The first page: whether all is well."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Generic, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from runtime.clock import monotonic
from views.installation import Installation
from views.overview import Overview
from web.dashboard import drawing
from web.dashboard.rendering import Page, render
from web.dashboard.session import Visitor, is_fragment, viewing

router = APIRouter(include_in_schema=False)
Viewer = Annotated[Visitor, viewing()]
# A page that is opened is at most so old; one that stays open shows an older one, so that many open
# pages ask the database no more often than one.
FRESH_S = 2.0
KEPT_S = 15.0


T = TypeVar("T")


@dataclass
class Kept(Generic[T]):
    """What was last made of each scope, for all who look."""

    _make: Callable[[Installation], T]
    _kept: dict[int | None, tuple[float, T]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, opened: Installation, oldest_s: float) -> T:
        """Return what is made of a scope, at most `oldest_s` old."""
        key = opened.scope.small_app_id
        with self._lock:
            known = self._kept.get(key)
            if known is not None and monotonic() - known[0] < oldest_s:
                return known[1]
            made = self._make(opened)
            self._kept[key] = (monotonic(), made)
            return made

    def forget(self) -> None:
        """Let the next who looks see what is now: after a change."""
        with self._lock:
            self._kept.clear()


@router.get("/")
def overview(request: Request, visitor: Viewer) -> HTMLResponse:
    """Show the overview; htmx asks for its live part alone."""
    is_part = is_fragment(request)
    overviews: Kept[Overview] = request.app.state.overviews
    shown = overviews.of(visitor.opened, KEPT_S if is_part else FRESH_S)
    drawn = drawing.timeline(shown.timeline, Page(request).zone)
    template = "overview_live.html" if is_part else "overview.html"
    return render(request, template, {"visitor": visitor, "shown": shown, "drawn": drawn})
