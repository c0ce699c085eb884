"""Errors as problem details (RFC 9457): one shape for every answer that is not a success."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from models.errors import (
    BrokerUnavailable,
    InvalidDocument,
    LeaseLost,
    NotFound,
    Outdated,
    Problem,
    Refused,
    SchedulerError,
)
from models.hints import path_of
from models.problems import remedy_of
from models.store.schema import UnfitSchema
from runtime.database import DATABASE_AWAY, reason_of
from runtime.logs.events import EventLog
from runtime.visible import visible
from services.followers.documents import NotReady, NotTaken
from services.view import View

logger = EventLog("minutebook.web")

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = "5"
# How long the body of a request may take to come.
ARRIVES_WITHIN_S = 30.0
LATE = "the body did not arrive in time; send all of it at once"


class Fault(View):
    """One fault of a document or a parameter."""

    path: str = Field(description="Where: `when.timezone`, or `query.limit`.")
    value: Any = Field(description="The value there, shortened.")
    remedy: str = Field(description="What is wrong, and what to write instead.")


class ProblemDetails(View):
    """Why a request did not succeed."""

    type: str = Field(description="The kind of problem, as a URN.")
    title: str = Field(description="The kind of problem in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong here, and what to do.")
    on_command_line: str = Field(
        "", description="What a command says instead of `detail`, if it differs."
    )
    problems: tuple[Fault, ...] = Field((), description="Each fault of a document or parameter.")


class Unauthorized(Exception):
    """The request has no valid token."""


class Forbidden(Exception):
    """The token does not permit the request."""


class TooManyOpen(Exception):
    """The small app or the token has as many open requests as it may have at a time."""


class DownloadsFull(Exception):
    """The process serves as many downloads as it may at a time."""


class BodyTooLarge(Exception):
    """The body of the request is larger than it may be."""


class BodyTooSlow(Exception):
    """The body of the request did not arrive within its time."""


class PreconditionRequired(Exception):
    """The request does not name the revision that it changes."""


class Stopping(Exception):
    """The server shuts down, and hands out nothing more."""


@dataclass(frozen=True)
class Described:
    """What an error is, before it is written down; `kind` is its name, such as `not-found`."""

    status: int
    kind: str
    detail: str
    problems: Sequence[Problem] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    # The detail for the reader of a page, and of a command line, if it differs.
    on_page: str = ""
    on_command_line: str = ""


def as_json(error: Described) -> Response:
    """Return problem details."""
    details = ProblemDetails(
        type=f"urn:minutebook:problem:{error.kind}",
        title=HTTPStatus(error.status).phrase,
        status=error.status,
        detail=error.detail,
        on_command_line=error.on_command_line,
        problems=tuple(
            Fault(path=one.path, value=_short(one.value), remedy=one.remedy)
            for one in error.problems
        ),
    )
    unsaid = None if error.on_command_line else {"on_command_line"}
    shown = details.model_dump(mode="json", exclude=unsaid)
    body = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    # A refused text may hold half a character, which UTF-8 cannot write but JSON can escape.
    text = body.encode("utf-8", "backslashreplace")
    return Response(text, error.status, dict(error.headers), MEDIA_TYPE)


# The status, the kind and the headers of the answer, by the most specific class of the error.
KNOWN: dict[type[Exception], tuple[int, str, dict[str, str]]] = {
    InvalidDocument: (422, "invalid-document", {}),
    NotFound: (404, "not-found", {}),
    Outdated: (412, "outdated", {}),
    NotTaken: (409, "not-taken", {}),
    NotReady: (409, "not-ready", {"Retry-After": "1"}),
    Refused: (409, "refused", {}),
    LeaseLost: (409, "lease-lost", {}),
    BrokerUnavailable: (503, "broker-unavailable", {"Retry-After": RETRY_AFTER_S}),
    UnfitSchema: (503, "unfit-schema", {"Retry-After": RETRY_AFTER_S}),
    SchedulerError: (500, "failed", {}),
    Unauthorized: (401, "unauthorized", {"WWW-Authenticate": "Bearer"}),
    Forbidden: (403, "forbidden", {}),
    TooManyOpen: (429, "too-many-open", {"Retry-After": RETRY_AFTER_S}),
    DownloadsFull: (503, "downloads-full", {"Retry-After": RETRY_AFTER_S}),
    BodyTooLarge: (413, "body-too-large", {"Connection": "close"}),
    BodyTooSlow: (408, "body-too-slow", {"Connection": "close"}),
    PreconditionRequired: (428, "precondition-required", {}),
    Stopping: (503, "stopping", {"Retry-After": "1", "Connection": "close"}),
    # Nobody gets this answer, and the log is not for strangers to fill.
    ClientDisconnect: (400, "client-gone", {"Connection": "close"}),
}


def install(app: FastAPI, write: Callable[[Request, Described], Response]) -> None:
    """Let the app answer every error as `write` writes it."""

    def handler(describe: Callable[[Request, Any], Described]) -> Any:
        return lambda request, error: write(request, _visible(describe(request, error)))

    app.add_exception_handler(RequestValidationError, handler(_invalid_request))
    app.add_exception_handler(HTTPException, handler(_http_error))
    app.add_exception_handler(Exception, handler(_unexpected))
    for kind in KNOWN:
        app.add_exception_handler(kind, handler(_known_error))
    for kind in DATABASE_AWAY:
        app.add_exception_handler(kind, handler(_database_away))


def problem_of(request: Request, error: Exception) -> Response:
    """Return the answer to an error of a request that the app does not route."""
    known: Any = request.app.exception_handlers
    handler = next(known[one] for one in type(error).__mro__ if one in known)
    answer: Response = handler(request, error)
    return answer


def _visible(error: Described) -> Described:
    """Return an error whose texts hide and reverse nothing: other servers may have written them."""
    detail, on_page = visible(error.detail), visible(error.on_page)
    told = visible(error.on_command_line)
    return replace(error, detail=detail, on_page=on_page, on_command_line=told)


def _known_error(_request: Request, error: Exception) -> Described:
    status, kind, headers = next(KNOWN[one] for one in type(error).__mro__ if one in KNOWN)
    problems = error.problems if isinstance(error, InvalidDocument) else ()
    if not isinstance(error, SchedulerError):
        return Described(status, kind, str(error), problems, headers)
    told = "" if error.over_http == str(error) else str(error)
    return Described(status, kind, error.over_http, problems, headers, error.on_page, told)


def _database_away(_request: Request, error: Exception) -> Described:
    logger.warning("database_unavailable", "database unavailable: {error}", reason_of(error))
    detail = "the database does not answer; try again"
    return Described(503, "database-unavailable", detail, headers={"Retry-After": RETRY_AFTER_S})


def _invalid_request(_request: Request, error: Any) -> Described:
    problems = [
        Problem(path_of(one["loc"]), one.get("input"), remedy_of(one)) for one in error.errors()
    ]
    detail = "\n".join(map(str, problems))
    return Described(422, "invalid-request", detail, problems)


def _http_error(request: Request, error: Any) -> Described:
    status = HTTPStatus(error.status_code)
    kind = status.phrase.lower().replace(" ", "-")
    headers = dict(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_methods_at(request))
    return Described(status, kind, str(error.detail), headers=headers)


def _methods_at(request: Request) -> list[str]:
    """Return the methods of a path. Starlette names only those of its first endpoint."""
    endpoints: Sequence[APIRoute] = request.app.state.endpoints
    matching = [one for one in endpoints if one.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for one in matching for method in one.methods or ()})


def _unexpected(request: Request, error: Exception) -> Described:
    logger.error(
        "request_failed", "{method} {path} failed", request.method, request.url.path, exc_info=error
    )
    return Described(500, "internal", "the server failed; its log says why")


def _short(value: object) -> object:
    """Return a value that fits into an answer."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 200 else text[:199] + "…"
