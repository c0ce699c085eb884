"""The endpoint for people without an account."""

from fastapi import Request, Response

from views.apps.public import PublicStatus
from web.public import HEADERS
from web.routing import endpoints
from web.together import answer, json_of

router = endpoints("public")


@router.head("/status/{app}.json", include_in_schema=False)
@router.get("/status/{app}.json", response_model=PublicStatus)
async def show_public_status(request: Request, app: str) -> Response:
    """Return how fresh a small app's data are, without a token, if its document allows it."""
    made = answer(json_of(await request.app.state.public_statuses.get(app)))
    made.headers.update(HEADERS)
    return made
