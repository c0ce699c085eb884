"""The page of health: whether Minutebook itself works; pausing what it sends, from every page."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from models.roles import Permission
from services import audit
from services.doctor import environment
from services.overview import TONES
from services.status import pauses
from web.dashboard.fields import in_zone
from web.dashboard.overview import FRESH_S, KEPT_S
from web.dashboard.rendering import Page, redirect, render
from web.dashboard.session import (
    Operator,
    Visitor,
    changing,
    is_fragment,
    page_asked,
    viewing,
)
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
ENTRIES = 20
OfInstallation = Annotated[Visitor, changing(Permission.OPERATE, is_of_installation=True)]


@router.get("/health")
def show_health(
    request: Request,
    visitor: Annotated[Visitor, viewing(is_of_installation=True)],
    doctor: bool = False,
) -> HTMLResponse:
    """Show the daemon, workers, queues, findings and the audit trail; htmx asks for what lives."""
    opened, is_part = visitor.opened, is_fragment(request)
    is_admin = visitor.may(Permission.ADMINISTER)
    status = request.app.state.status.of(opened, KEPT_S if is_part else FRESH_S)
    live = {
        "status": status,
        "verdict_tone": TONES[status.verdict.state],
        "queues": pauses.list_queues(opened).root,
    }
    if is_part:
        return render(request, "health_live.html", live)
    values = {
        **live,
        "report": environment.examine(opened).root if doctor and is_admin else (),
        "audit": audit.list_entries(opened, ENTRIES, None).items if is_admin else (),
    }
    return render(request, "health.html", values)


@router.post("/pause")
def pause(request: Request, visitor: OfInstallation) -> RedirectResponse:
    """Pause everything, or a queue, for a span that the form offers, or until an instant."""
    form = visitor.form
    queue, reason = form.get("queue", "") or None, form.get("reason", "") or None
    until = in_zone(form.get("until", ""), Page(request).zone) or form.get("span", "") or None
    done = pauses.pause(visitor.opened, queue, queue is None, until, reason)
    return redirect(request, page_asked(request), _paused(done))


@router.post("/resume")
def resume(request: Request, visitor: OfInstallation) -> RedirectResponse:
    """End the pause of everything, or of a queue."""
    queue = visitor.form.get("queue", "") or None
    pauses.resume(visitor.opened, queue, queue is None)
    return redirect(request, page_asked(request), say("pause.resumed"))


@router.post("/apps/{app}/pause")
def pause_app(request: Request, visitor: Operator, app: str) -> RedirectResponse:
    """Pause a small app for a span, or until it is resumed."""
    form = visitor.form
    until, reason = form.get("span", "") or None, form.get("reason", "") or None
    done = pauses.pause(visitor.opened, until=until, reason=reason)
    return redirect(request, f"/apps/{app}", _paused(done))


@router.post("/apps/{app}/resume")
def resume_app(request: Request, visitor: Operator) -> RedirectResponse:
    """Send what is due of a small app again."""
    pauses.resume(visitor.opened)
    return redirect(request, page_asked(request), say("pause.resumed"))


def _paused(done: pauses.PauseChange) -> str:
    return say("pause.done", words=done.words[:1].upper() + done.words[1:])
