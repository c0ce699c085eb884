"""Endpoints that many workers call often: plain routes, with one thread for each request.

FastAPI describes them in OpenAPI, and serves none of them: they stand in front of it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature, getdoc, signature
from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from models.roles import Permission
from models.store.bearers import Bearer
from runtime.clock import monotonic
from services.installation import Installation
from services.view import View
from web.access import by_id, opened_for, worker_of
from web.bodies import reads_model, value_of
from web.metrics import note_answer
from web.problems import ARRIVES_WITHIN_S, LATE, BodyTooLarge, BodyTooSlow, Stopping, problem_of
from web.routing import WORKERS

STOPPING = "the server is stopping; ask again in a moment"
JSON = "application/json"

Whose = Callable[[Installation, Bearer], Any]
# Takes whose request it is, the id in the path, and the body.
Act = Callable[[Any, str, Any], View | None]


@dataclass(frozen=True)
class Door:
    """Who may call an endpoint, what its function gets of them, and how long a body may be."""

    permission: Permission
    longest: int
    whose: Whose = lambda opened, _bearer: opened
    # Whether work begins by it: a server that stops refuses that.
    begins: bool = False


def post(router: APIRouter, routes: list[Route], path: str, act: Act, door: Door) -> None:
    """Add an endpoint: its description to `router`, and its route to `routes`."""
    types = get_type_hints(act)
    body, answer = types[[*signature(act).parameters][-1]], types["return"]
    router.add_api_route(
        path,
        _described(act, door.permission, has_id="{id}" in path),
        methods=["POST"],
        response_model=None if answer is type(None) else answer,
        status_code=204 if answer is type(None) else 200,
        openapi_extra=reads_model(body),
        name=act.__name__,
        description=(getdoc(act) or "").partition("\n\n")[0],
    )

    async def serve(request: Request) -> Response:
        if door.begins and request.app.state.dispatcher.is_stopped:
            raise Stopping(STOPPING)
        text = await _short_body(request, door.longest)

        def answered() -> Response:
            bearer = worker_of(request, door.permission)
            opened = opened_for(request, bearer, None)
            its = door.whose(opened, bearer)
            made = act(its, request.path_params.get("id", ""), value_of(text, body))
            if made is None:
                return Response(status_code=204)
            return Response(made.model_dump_json(), media_type=JSON)

        return await asyncio.get_running_loop().run_in_executor(WORKERS, answered)

    routes.append(Route(path, serve, methods=["POST"]))


async def answers(
    app: FastAPI, routes: Sequence[Route], scope: Scope, receive: Receive, send: Send
) -> bool:
    """Answer a request to one of these endpoints; return False for any other, unheard."""
    for route in routes:
        match, found = route.matches(scope)
        if match is Match.FULL:
            break
    else:
        return False
    began = monotonic()
    request = Request({**scope, **found, "app": app}, receive)
    try:
        response = await route.endpoint(request)
    except Exception as error:  # the request's own: all others go on
        response = problem_of(request, error)
    note_answer(app.state.durations, "POST", route.path, response.status_code, began)
    await response(scope, receive, send)
    return True


def _described(act: Act, permission: Permission, *, has_id: bool) -> Callable[..., None]:
    """Return a function that FastAPI reads, with the parameters that the endpoint has."""

    def described(**_: Any) -> None:
        raise NotImplementedError

    kind = Parameter.KEYWORD_ONLY
    opened = Parameter("opened", kind, annotation=Annotated[Installation, by_id(permission)])
    given: Sequence[Parameter] = [opened]
    if has_id:
        given = [opened, Parameter("id", kind, annotation=str)]
    described.__signature__ = Signature(given)  # type: ignore[attr-defined]
    described.__name__ = act.__name__
    return described


async def _short_body(request: Request, longest: int) -> bytes:
    """Return the body; 413 as soon as it is longer than it may be, 408 if it comes too slowly."""
    body = b""
    try:
        async with asyncio.timeout(ARRIVES_WITHIN_S):
            async for some in request.stream():
                body += some
                if len(body) > longest:
                    raise BodyTooLarge(f"a report has at most {longest} bytes; send less")
    except TimeoutError:
        raise BodyTooSlow(LATE) from None
    return body
