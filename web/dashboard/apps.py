"""Pages of small apps."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from runtime.plug_ins import added
from services import apps, users
from services.installation import Installation
from services.overview import TONES as VERDICT_TONES
from services.verdict import verdict_of_app
from web.dashboard.documents import pretty
from web.dashboard.rendering import render
from web.dashboard.session import Viewer, is_fragment

router = APIRouter(include_in_schema=False)
MOST_PEOPLE = 100
# The status of each takes several statements.
MOST_APPS = 50


@router.get("/apps")
def list_apps(request: Request, visitor: Viewer, cursor: str | None = None) -> HTMLResponse:
    """Show a page of the small apps."""
    found = apps.list_apps(visitor.opened, MOST_APPS, cursor)
    values: dict[str, object] = {"found": found}
    for more in added("apps_page"):
        values |= more(visitor.opened, [one.name for one in found.items])
    return render(request, "apps.html", values)


@router.get("/apps/{app}")
def show_app(
    request: Request,
    visitor: Viewer,
    app: str,
    users_after: str | None = None,
    after: str | None = None,
) -> HTMLResponse:
    """Show a small app, with a page of its users and, after `after`, one of what a plug-in lists.

    htmx asks only for the verdict on it, and for what of plug-ins changes.
    """
    opened = visitor.opened
    if is_fragment(request):
        live = _standing(opened, app)
        for more in added("app_live"):
            live |= more(opened, app)
        return render(request, "app_live.html", live)
    shown = apps.show(opened, app)
    values: dict[str, object] = {
        "shown": shown,
        "people": users.list_users(opened, MOST_PEOPLE, users_after),
        # Whether a plug-in shows more than a card.
        "is_full": False,
        "document": pretty(shown.document),
        **_standing(opened, app),
    }
    for more in added("app_page"):
        values |= more(opened, shown, after)
    return render(request, "app.html", values)


def _standing(opened: Installation, app: str) -> dict[str, object]:
    verdict = verdict_of_app(opened, app)
    return {
        "verdict": verdict,
        "verdict_tone": VERDICT_TONES[verdict.state],
    }
