"""Endpoints for probes: without a token, and without details."""

from fastapi import Request, Response

from models.store.schema import check_schema
from runtime.database import reading
from services import status
from services.installation import Installation
from web.problems import Described, as_json
from web.routing import endpoints

router = endpoints("health")


@router.head("/healthz", status_code=204, include_in_schema=False)
@router.get("/healthz", status_code=204)
async def is_alive() -> Response:
    """Answer 204: the process lives."""
    return Response(status_code=204)


@router.head("/readyz", status_code=204, include_in_schema=False)
@router.get("/readyz", status_code=204)
def is_ready(request: Request) -> Response:
    """Answer 204 if this process can serve: its database answers, with this release's schema."""
    opened: Installation = request.app.state.installation
    with reading(opened.engine) as connection:
        check_schema(connection)
    return Response(status_code=204)


@router.head("/healthz/ticks", status_code=204, include_in_schema=False)
@router.get("/healthz/ticks", status_code=204)
def ticks(request: Request) -> Response:
    """Answer 204 if a daemon ticked within the last two ticks."""
    if status.is_ticking(request.app.state.installation):
        return Response(status_code=204)
    why = "no daemon ended a tick within the last two; is it running?"
    return as_json(Described(503, "no-tick", why))
