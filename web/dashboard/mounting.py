"""The dashboard's way into the application: its pages and files, and its answers to errors."""

from http import HTTPStatus

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from starlette.staticfiles import StaticFiles

from runtime.plug_ins import added
from web.dashboard import (
    account,
    action,
    actions,
    apps,
    editing,
    health,
    invite,
    operations,
    overview,
    sign_in,
)
from web.dashboard.rendering import STATIC, render
from web.dashboard.session import SignInNeeded, is_fragment, visitor_or_none
from web.dashboard.texts import say, texts
from web.problems import Described, as_json, install

FOR_EVER = "public, max-age=31536000, immutable"
# What programs ask for: the first part of the path, or a name that ends in .json.
OF_PROGRAMS = frozenset({"api", "healthz", "jobs", "metrics", "readyz", "static"})

router = APIRouter(include_in_schema=False)
_files = StaticFiles(directory=STATIC)
# Pages belong neither to the API nor to its description.
ROUTERS = (
    overview.router,
    actions.router,
    editing.router,
    action.router,
    operations.router,
    apps.router,
    health.router,
    account.router,
    invite.router,
    sign_in.router,
    router,
)


def mount(app: FastAPI) -> tuple[APIRouter, ...]:
    """Let the application answer errors for people; return the routers of all pages."""
    install(app, answer_error)
    app.add_exception_handler(SignInNeeded, sign_in.ask_to_sign_in)
    return pages()


def pages() -> tuple[APIRouter, ...]:
    """Return the routers of all pages."""
    return (*ROUTERS, *added("pages"))


@router.get("/static/{name}")
async def static_file(request: Request, name: str) -> Response:
    """Return a file; one whose version is named never changes, so browsers keep it."""
    made = await _files.get_response(name, request.scope)
    made.headers["Cache-Control"] = FOR_EVER if "v" in request.query_params else "no-cache"
    return made


def answer_error(request: Request, error: Described) -> Response:
    """Return the answer for an error, in a form that the client can read."""
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    if path.removeprefix("/").partition("/")[0] in OF_PROGRAMS or path.endswith(".json"):
        return as_json(error)
    # Set only if the request got so far.
    visitor = getattr(request.state, "visitor", None)
    if visitor is None and error.status == HTTPStatus.NOT_FOUND:
        visitor = visitor_or_none(request)
    values = {
        "visitor": visitor,
        "title": _title(error.status),
        "detail": _sentence(error),
        "problems": error.problems,
    }
    template = "error_part.html" if is_fragment(request) else "error.html"
    return render(request, template, values, error.status, error.headers)


def _sentence(error: Described) -> str:
    """Return what is wrong; a path without an endpoint has no words of ours yet."""
    if error.detail in {HTTPStatus.NOT_FOUND.phrase, HTTPStatus.METHOD_NOT_ALLOWED.phrase}:
        return say("errors.nothing_here")
    detail = error.on_page or error.detail
    first, _, _ = detail.partition(" ")
    return detail[:1].upper() + detail[1:] if first.isalpha() else detail


def _title(status: int) -> str:
    known = texts()["errors"]
    return say(f"errors.{status}") if str(status) in known else say("errors.other")
