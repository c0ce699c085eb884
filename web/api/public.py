"""The endpoint for people without an account."""

from fastapi import Request, Response

from models.errors import NotFound
from views.apps.public import PublicStatus
from web.kept import Kept
from web.routing import endpoints

router = endpoints("public")
KEPT_S = 1.0
# The same for a name that is unknown and for one that shows nothing.
NOTHING = "no small app of this name shows its status to people without an account"
HEADERS = {"Cache-Control": f"public, max-age={KEPT_S:.0f}"}


@router.head("/status/{app}.json", include_in_schema=False)
@router.get("/status/{app}.json")
def show_public_status(request: Request, response: Response, app: str) -> PublicStatus:
    """Return how fresh a small app's data are, without a token, if its document allows it."""
    response.headers.update(HEADERS)
    return status_for_all(request, app)


def status_for_all(request: Request, name: str) -> PublicStatus:
    """Return the public status of a small app, at most a second old. Raises NotFound."""
    kept: Kept[PublicStatus | None] = request.app.state.public_statuses
    found = kept.of(request.app.state.installation, KEPT_S, name)
    if found is None:
        raise NotFound(NOTHING)
    return found
