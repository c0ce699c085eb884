"""The page of health: whether Minutebook itself works."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from models.roles import Permission
from models.values.zones import in_zone
from views import audit
from views.doctor import environment
from views.overview import TONES
from views.overview.timeline import Ticked
from views.overview.vitals import TICKS
from web.dashboard.drawing import Mark
from web.dashboard.overview import FRESH_S, KEPT_S
from web.dashboard.rendering import Page, render
from web.dashboard.session import Visitor, is_fragment, viewing
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
ENTRIES = 20
SLOW_MS = 5_000
WIDTH, HEIGHT = 1200, 90


@router.get("/health")
def show_health(
    request: Request,
    visitor: Annotated[Visitor, viewing(is_of_installation=True)],
    doctor: bool = False,
) -> HTMLResponse:
    """Show the daemon, workers, queues, findings and the audit trail; htmx asks for what lives."""
    opened, is_part = visitor.opened, is_fragment(request)
    is_admin = visitor.may(Permission.ADMINISTER)
    vitals = request.app.state.vitals.of(opened, KEPT_S if is_part else FRESH_S)
    live = {
        "vitals": vitals,
        "verdict_tone": TONES[vitals.verdict.state],
        "ticks": list(_ticks(vitals.ticks, Page(request).zone)),
    }
    if is_part:
        return render(request, "health_live.html", live)
    values = {
        **live,
        "report": environment.examine(opened).root if doctor and is_admin else (),
        "audit": audit.list_entries(opened, ENTRIES, None).items if is_admin else (),
    }
    return render(request, "health.html", values)


def _ticks(ticked: Sequence[Ticked], zone: str) -> Iterator[Mark]:
    """Return a bar for each tick, as high as the tick was long."""
    most = max((one.duration_ms for one in ticked), default=0.0) or 1.0
    step = WIDTH / TICKS
    for place, one in enumerate(ticked):
        height = round(max(2.0, (HEIGHT - 4) * one.duration_ms / most), 1)
        tip = say(
            "health.tick",
            at=in_zone(one.at, zone),
            duration=f"{one.duration_ms:.0f}",
            recorded=one.recorded,
            lag=f"{one.lag_s:.1f}",
        )
        look = "warn" if one.duration_ms > SLOW_MS else "busy" if one.recorded else "idle"
        yield Mark(round(place * step, 1), HEIGHT - height, round(step - 2, 1), height, look, tip)
