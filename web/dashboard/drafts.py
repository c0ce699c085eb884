"""Documents that were written in a session that has ended: kept on the way to the next one.

Nothing is stored: the draft travels through the form of the sign-in page, and back.
"""

import re
from collections.abc import Mapping

from fastapi import Request
from fastapi.responses import HTMLResponse

from web.dashboard.rendering import render
from web.dashboard.session import Form

FIELDS = ("document", "uid", "revision")
_STORING = re.compile(r"/apps/([^/]+)/(?:store|draft)")


def app_of(request: Request) -> str | None:
    """Return the small app whose document a request would store; None for any other request."""
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    found = _STORING.fullmatch(path)
    return found[1] if found and request.method == "POST" else None


def kept(form: Form) -> dict[str, str]:
    """Return the fields of a draft; none for a form without a document."""
    return {name: form.one(name) for name in FIELDS} if form.one("document") else {}


def offer(request: Request, app: str, fields: Mapping[str, str]) -> HTMLResponse:
    """Return the page from which one goes on with a draft."""
    values = {"visitor": None, "app": app, "fields": fields}
    return render(request, "draft.html", values)
