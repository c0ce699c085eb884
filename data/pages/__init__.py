"""Pages of data and mails: a status for everybody, a template, the executive summary."""

from collections.abc import Sequence
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from data.endpoints import PUBLIC_HEADERS, status_for_all
from data.services import status, summary, templates
from data.services.status import DataOfApp
from models.errors import InvalidDocument, Refused
from services.apps import App
from services.installation import Installation
from web.dashboard.rendering import POLICY, redirect, render
from web.dashboard.session import Editor, Viewer, is_fragment
from web.dashboard.texts import ending_of, say

router = APIRouter(include_in_schema=False)
MOST_TEMPLATES = 100
TONES = {"ready": "good", "running": "busy", "failed": "bad"}
# The page shows the mail in a frame.
FRAMED = f"{POLICY}; frame-src 'self'"
# The policy of a mail's HTML: it styles itself, and neither loads nor runs anything.
HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline';"
    " img-src data:; frame-ancestors 'self'"
}


def _tone(status: str) -> str:
    return TONES.get(status, "idle")


def statuses_of(opened: Installation, names: Sequence[str]) -> dict[str, object]:
    """Return what the page of small apps shows as well: how fresh their data are."""
    return {"statuses": status.statuses(opened, names), "data_tone": _tone}


def shown_of(opened: Installation, app: App, after: str | None) -> dict[str, object]:
    """Return what the page of a small app shows as well: its data, and a page of its templates."""
    found = DataOfApp.of(app)
    settings = app.document.get("settings", {})
    return {
        **_shown(found),
        # Without data, its cards would be empty ones.
        "is_full": bool(found.domains) or found.data.status != "empty",
        "templates": templates.list_templates(opened, MOST_TEMPLATES, after, settings),
    }


def live(opened: Installation, app: str) -> dict[str, object]:
    """Return what of the page of a small app changes while it is looked at."""
    return _shown(status.data_of(opened, app))


def _shown(found: DataOfApp) -> dict[str, object]:
    ending = ending_of(found.data)
    return {"data": found.data, "domains": found.domains, "ending": ending, "data_tone": _tone}


@router.get("/status/{app}")
def show_public_status(request: Request, app: str) -> HTMLResponse:
    """Show how fresh a small app's data are; htmx asks again, more often while an update runs."""
    found = status_for_all(request, app)
    values = {"name": app, "shown": found, "ending": ending_of(found)}
    template = "public_part.html" if is_fragment(request) else "public.html"
    # The answer to htmx is another one.
    headers = {**PUBLIC_HEADERS, "Vary": "HX-Request, Cookie"}
    return render(request, template, values, headers=headers)


@router.get("/apps/{app}/templates/{template}")
def show_template(
    request: Request, visitor: Viewer, app: str, template: str, user: str = ""
) -> HTMLResponse:
    """Show a template with the values of a user, or with sample values."""
    made, fault = None, ""
    try:
        made = templates.preview(visitor.opened, template, user or None)
    except (InvalidDocument, Refused) as error:
        fault = error.on_page
    values = {
        "app": app,
        "template": template,
        "user": user,
        "made": made,
        "fault": fault,
    }
    return render(request, "mail.html", values, headers={"Content-Security-Policy": FRAMED})


@router.get("/apps/{app}/templates/{template}/html")
def show_html(visitor: Viewer, template: str, user: str = "") -> Response:
    """Return only the HTML part, for the frame of the page."""
    made = templates.preview(visitor.opened, template, user or None)
    return HTMLResponse(templates.html_of(made), headers=HEADERS)


@router.get("/apps/{app}/summary")
def show_summary(request: Request, visitor: Viewer, app: str) -> HTMLResponse:
    """Show the executive summary as it would be mailed now."""
    made = summary.preview(visitor.opened)
    values = {"app": app, "made": made}
    return render(request, "summary.html", values, headers={"Content-Security-Policy": FRAMED})


@router.get("/apps/{app}/summary/html")
def show_summary_html(visitor: Viewer) -> Response:
    """Return only the HTML part of the summary, for the frame of the page."""
    return HTMLResponse(summary.preview(visitor.opened).html, headers=HEADERS)


@router.post("/apps/{app}/templates/{template}/send-test")
def send_test(request: Request, visitor: Editor, app: str, template: str) -> RedirectResponse:
    """Send a template to one address."""
    to, user = visitor.form.get("to", "").strip(), visitor.form.get("user", "").strip()
    done = templates.send_test(visitor.opened, template, to, user or None)
    told = say("mail.sent", to=done.to, message=done.message)
    return redirect(request, f"/apps/{app}/templates/{quote(template)}", told)
