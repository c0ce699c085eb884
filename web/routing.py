"""Routers of the endpoints."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar
from urllib.parse import quote

import anyio.to_thread
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute, request_response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from web.turns import Turns

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

# How many words at the beginning of a path select its endpoints.
WORDS = 2
Words = tuple[str, ...]


# The endpoints that may work for seconds.
HEAVY: set[Callable[..., Any]] = set()
_turns: ContextVar[Turns] = ContextVar("turns")


def heavy(endpoint: Endpoint) -> Endpoint:
    """Let an endpoint, which is no coroutine, wait for the turn of its small app.

    Its parameter `opened` or `visitor` names the app.
    """
    HEAVY.add(endpoint)
    return endpoint


class ByTurns(APIRoute):
    """A route whose endpoint takes turns if it is heavy, once its body has come."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if self.endpoint in HEAVY:
            self.dependant.call = partial(_in_turn, self.endpoint)
            self.app = _with_turns(request_response(self.get_route_handler()))


def _with_turns(app: ASGIApp) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        _turns.set(scope["app"].state.turns)
        await app(scope, receive, send)

    return answer


async def _in_turn(endpoint: Callable[..., Any], **values: Any) -> Any:
    opened = values["visitor"].opened if "visitor" in values else values["opened"]
    async with _turns.get().one(opened.app_name):
        return await anyio.to_thread.run_sync(partial(endpoint, **values))


def endpoints(tag: str, prefix: str = "", kind: type[APIRoute] = ByTurns) -> APIRouter:
    """Return a router whose routes, of a kind, the application takes over as they are.

    FastAPI matches each request twice against all routers that it includes, which takes longer
    than all else that it does for a read.
    """
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=kind,
        generate_unique_id_function=_name,
        strict_content_type=False,
    )


def _name(route: APIRoute) -> str:
    return route.name


class SharedRead(APIRoute):
    """A read that many requests may ask for at once: FastAPI describes it, and does not call it.

    For each request, FastAPI works out what an endpoint wants, and prepares for files and tasks
    that such a read never has. Its endpoint gets the request, `opened`, and the values of its path,
    and returns the response; its permission is declared as everywhere.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        (self._opened,) = self.dependant.dependencies
        self.app = self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        values = {one.name: request.path_params[one.alias] for one in self.dependant.path_params}
        opened = await self._open(request)
        response = await self.endpoint(request=request, opened=opened, **values)
        await response(scope, receive, send)

    async def _open(self, request: Request) -> Any:
        """Call the dependency that checks the token, as FastAPI does."""
        resolve: Any = self._opened.call
        (scheme,) = self._opened.dependencies
        find: Any = scheme.call
        values = {one.name: request.path_params[one.alias] for one in self._opened.path_params}
        for one in self._opened.query_params:
            values[one.name] = request.query_params.get(one.alias)
        return await resolve(request=request, credentials=await find(request), **values)


class ByFirstWords(BaseRoute):
    """Finds an endpoint among those whose paths begin alike, in their order.

    A router tries one endpoint after the other: a path of the last one was matched a hundred times.
    """

    def __init__(self, endpoints: Iterable[APIRoute]) -> None:
        self._below: dict[Words, list[APIRoute]] = {}
        for one in endpoints:
            words = takewhile(lambda word: "{" not in word, _words(one.path))
            self._below.setdefault(tuple(words), []).append(one)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return how an endpoint matches a request, the first one that does so in full.

        A path with one slash too many, or without its only one, leads to that of an endpoint.
        """
        found = self._matching(scope)
        if found[0] is not Match.NONE:
            return found
        root, path = scope.get("root_path", ""), scope.get("path", "")
        other = f"{root}/{path.removeprefix(root).strip('/')}"
        if other != path and self._matching({**scope, "path": other})[0] is not Match.NONE:
            return Match.FULL, {"route": _Elsewhere(other)}
        return found

    def _matching(self, scope: Scope) -> tuple[Match, Scope]:
        words = _words(scope.get("path", "").removeprefix(scope.get("root_path", "")))
        best: tuple[Match, Scope] = (Match.NONE, {})
        for size in range(len(words), -1, -1):
            for one in self._below.get(words[:size], ()):
                match, found = one.matches(scope)
                if match is Match.FULL:
                    return match, found
                if match is Match.PARTIAL and best[0] is Match.NONE:
                    best = match, found
        return best

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the endpoint that matched answer."""
        found: Any = scope["route"]
        await found.handle(scope, receive, send)


class _Elsewhere:
    """Leads to another path of this server, whatever host the request names."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope.get("query_string", b"").decode("latin-1")
        address = quote(self._path) + (f"?{query}" if query else "")
        await RedirectResponse(address, 307)(scope, receive, send)


def _words(path: str) -> Words:
    return tuple(path.split("/", WORDS + 1)[1 : WORDS + 1])
