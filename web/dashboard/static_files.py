"""The files of the pages: scripts, the style sheet and the icon."""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.staticfiles import StaticFiles

from web.dashboard.rendering import STATIC

FOR_EVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)
_files = StaticFiles(directory=STATIC)


@router.get("/static/{name}")
async def static_file(request: Request, name: str) -> Response:
    """Return a file; one whose version is named never changes, so browsers keep it."""
    made = await _files.get_response(name, request.scope)
    made.headers["Cache-Control"] = FOR_EVER if "v" in request.query_params else "no-cache"
    return made
