"""Endpoints of the data product: rows, templates, and the executive summary."""

from functools import partial
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from data.views import rows, summary, templates
from views.installation import Installation
from web.bodies import JSON_LINES
from web.downloads import Download
from web.routing import endpoints
from web.verbs import answers, serve

router = endpoints("small apps")
ROWS: dict[int | str, dict[str, Any]] = {
    200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}}
}


@answers(router, rows.open_rows, response_class=StreamingResponse, responses=ROWS)
def read_data(
    request: Request, opened: Installation, app: str, domain: str, staging: bool = False
) -> StreamingResponse:
    """Return the published rows of a domain, all of one version, as JSON Lines.

    429 or 503 while as many downloads are in progress as may be.
    """
    opens = partial(rows.open_lines, opened, app, domain, is_staged=staging)
    return Download(request.app.state.downloads, app, opens, JSON_LINES)


serve(router, rows.published, templates, summary)
