"""Pages of small apps."""

import json
from collections.abc import Mapping, Sequence

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from runtime.plug_ins import added
from views import apps, users
from views.installation import Installation
from views.overview import TONES as VERDICT_TONES
from views.verdict import verdict_of
from web.dashboard.documents import pretty
from web.dashboard.endings import ending_of
from web.dashboard.rendering import render
from web.dashboard.session import Viewer, is_fragment

router = APIRouter(include_in_schema=False)
MOST_PEOPLE = 100
MOST_ENTRIES = 12
# The status of each takes several statements.
MOST_APPS = 50
TONES = {"ready": "good", "running": "busy", "failed": "bad"}


def _tone(status: str) -> str:
    return TONES.get(status, "idle")


@router.get("/apps")
def list_apps(request: Request, visitor: Viewer, cursor: str | None = None) -> HTMLResponse:
    """Show a page of the small apps and how fresh their data are."""
    found = apps.list_apps(visitor.opened, MOST_APPS, cursor)
    statuses = apps.statuses(visitor.opened, [one.name for one in found.items])
    values = {"found": found, "statuses": statuses, "data_tone": _tone}
    return render(request, "apps.html", values)


@router.get("/apps/{app}")
def show_app(
    request: Request,
    visitor: Viewer,
    app: str,
    users_after: str | None = None,
    templates_after: str | None = None,
) -> HTMLResponse:
    """Show a small app, with a page of its users and one of its templates.

    htmx asks only for the verdict on it and the status of its data.
    """
    opened = visitor.opened
    if is_fragment(request):
        found = apps.data_of(opened, app)
        live = {**_shown(found), **_standing(opened, app)}
        return render(request, "app_live.html", live)
    shown = apps.show(opened, app)
    settings = shown.document.get("settings", {})
    values: dict[str, object] = {
        "shown": shown,
        **_shown(shown),
        "people": users.list_users(opened, MOST_PEOPLE, users_after),
        # Without data, its cards would be empty ones.
        "has_data": bool(shown.domains) or shown.data.status != "empty",
        "calendars": _calendars(shown.document.get("calendars", {})),
        "document": pretty(shown.document),
        "templates": None,
        **_standing(opened, app),
    }
    for more in added("app_page"):
        values |= more(opened, settings, templates_after)
    return render(request, "app.html", values)


def _shown(found: apps.App | apps.DataOfApp) -> dict[str, object]:
    return {"data": found.data, "domains": found.domains, "ending": ending_of(found.data)}


def _standing(opened: Installation, app: str) -> dict[str, object]:
    verdict = verdict_of(opened, app)
    return {
        "verdict": verdict,
        "verdict_tone": VERDICT_TONES[verdict.state],
        "data_tone": _tone,
    }


def _calendars(found: Mapping[str, Sequence[object]]) -> list[tuple[str, list[str], int]]:
    """Return each calendar's name, its first entries, and how many more it has."""
    return [
        (name, [_entry(one) for one in entries[:MOST_ENTRIES]], len(entries[MOST_ENTRIES:]))
        for name, entries in found.items()
    ]


def _entry(one: object) -> str:
    return one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)
