"""Routers of the endpoints."""

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

# By so many words at the beginning of a path its endpoints are found.
WORDS = 2
Words = tuple[str, ...]


def endpoints(tag: str, prefix: str = "") -> APIRouter:
    """Return a router whose routes the application takes over as they are.

    FastAPI matches each request twice against all routers that it includes, which takes longer
    than all else that it does for a read.
    """
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        generate_unique_id_function=_name,
        strict_content_type=False,
    )


def _name(route: APIRoute) -> str:
    return route.name


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
        """Return how an endpoint matches a request, the first one that does so in full."""
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


def _words(path: str) -> Words:
    return tuple(path.split("/", WORDS + 1)[1 : WORDS + 1])
