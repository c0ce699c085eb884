"""Errors as people see them: a page for a request of the pages, problem details for the rest."""

from http import HTTPStatus

from fastapi import Request
from fastapi.responses import Response

from web.dashboard.rendering import render
from web.dashboard.session import is_fragment, visitor_or_none
from web.dashboard.texts import say, texts
from web.problems import Described, as_json

# What programs ask for: the first part of the path, or a name that ends in .json.
OF_PROGRAMS = frozenset({"api", "healthz", "jobs", "metrics", "readyz", "static"})


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
