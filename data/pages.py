"""Pages of mails: a template as it looks to a person, a test of it, the executive summary."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from data.views import summary, templates
from models.errors import InvalidDocument, Refused
from views.installation import Installation
from web.dashboard.rendering import POLICY, render, see
from web.dashboard.session import Editor, Viewer
from web.dashboard.texts import say

router = APIRouter(include_in_schema=False)
MOST_TEMPLATES = 100
# The page shows the mail in a frame.
FRAMED = f"{POLICY}; frame-src 'self'"
# The policy of a mail's HTML: it styles itself, and neither loads nor runs anything.
HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline';"
    " img-src data:; frame-ancestors 'self'"
}


def templates_of(
    opened: Installation, settings: Mapping[str, Any], after: str | None
) -> dict[str, object]:
    """Return what the page of a small app shows as well: a page of its templates."""
    return {"templates": templates.list_templates(opened, MOST_TEMPLATES, after, settings)}


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
    # The frame asks for the mail with its charts.
    made = summary.preview(visitor.opened, has_charts=False)
    values = {"app": app, "made": made}
    return render(request, "summary.html", values, headers={"Content-Security-Policy": FRAMED})


@router.get("/apps/{app}/summary/html")
def show_summary_html(visitor: Viewer) -> Response:
    """Return only the HTML part of the summary, for the frame of the page."""
    return HTMLResponse(summary.preview(visitor.opened).html, headers=HEADERS)


@router.post("/apps/{app}/templates/{template}/send-test")
def send_test(request: Request, visitor: Editor, app: str, template: str) -> RedirectResponse:
    """Send a template to one address."""
    to, user = visitor.form.one("to").strip(), visitor.form.one("user").strip()
    done = templates.send_test(visitor.opened, template, to, user or None)
    told = say("mail.sent", to=done.to, message=done.message)
    return see(request, f"/apps/{app}/templates/{template}", told)
