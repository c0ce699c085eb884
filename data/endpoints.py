"""Endpoints of the data product: status, rows, templates, and the executive summary."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from data.services import rows, status, summary, templates
from data.services.status import DataStatus, PublicStatus
from models.errors import NotFound
from models.roles import Permission
from services.installation import Installation
from web.access import of_app
from web.bodies import JSON_LINES
from web.cache import TtlCache
from web.downloads import Download
from web.routing import endpoints
from web.verbs import answers, serve

router, public = endpoints("small apps"), endpoints("public")
KEPT_S = 1.0
# The same for a name that is unknown and for one that shows nothing.
NOTHING = "no small app of this name shows its status to people without an account"
PUBLIC_HEADERS = {"Cache-Control": f"public, max-age={KEPT_S:.0f}"}
ROWS: dict[int | str, dict[str, Any]] = {
    200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}}
}


def mount(app: FastAPI) -> tuple[APIRouter, ...]:
    """Let the application keep what it tells people without an account; return no pages."""
    app.state.public_statuses = TtlCache(status.public_status)
    return ()


@router.get("/api/apps/{app}/status")
def show_status(opened: Annotated[Installation, of_app(Permission.READ)]) -> DataStatus:
    """Return the status of a small app's data."""
    return status.status_of(opened, opened.app_name)


@public.head("/status/{app}.json", include_in_schema=False)
@public.get("/status/{app}.json")
def show_public_status(request: Request, response: Response, app: str) -> PublicStatus:
    """Return how fresh a small app's data are, without a token, if its document allows it."""
    response.headers.update(PUBLIC_HEADERS)
    return status_for_all(request, app)


def status_for_all(request: Request, name: str) -> PublicStatus:
    """Return the public status of a small app, at most a second old. Raises NotFound."""
    kept: TtlCache[PublicStatus | None] = request.app.state.public_statuses
    found = kept.of(request.app.state.installation, KEPT_S, name)
    if found is None:
        raise NotFound(NOTHING)
    return found


@answers(router, rows.open_rows, response_class=StreamingResponse, responses=ROWS)
def read_data(
    request: Request, opened: Installation, app: str, domain: str, staging: bool = False
) -> StreamingResponse:
    """Return the published rows of a domain, all of one version, as JSON Lines.

    429 or 503 while as many downloads are in progress as may be.
    """
    opens = partial(rows.open_lines, opened, app, domain, is_staged=staging)
    return Download(request, opened, opens, JSON_LINES)


serve(router, rows.published, templates, summary)
