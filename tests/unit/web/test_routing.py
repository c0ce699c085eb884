"""Endpoints are found by the first words of a path, as a search through all of them finds them."""

import re

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match

from web.app import api_routers
from web.dashboard.mounting import pages
from web.routing import ByFirstWords

ENDPOINTS = [
    route
    for router in (*api_routers(), *pages())
    for route in router.routes
    if isinstance(route, APIRoute)
]
PATHS = sorted({re.sub(r"{\w+(:\w+)?}", "x", one.path) for one in ENDPOINTS})


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "TRACE"])
def test_the_endpoint_is_the_first_that_matches(method: str) -> None:
    index = ByFirstWords(ENDPOINTS)
    found, wanted = {}, {}
    for path in (*PATHS, "/api/nothing", "//", "/api/operations/", ""):
        scope = {"type": "http", "method": method, "path": path, "root_path": ""}
        matches = [one.matches(scope) for one in ENDPOINTS]
        full = [child["route"] for match, child in matches if match is Match.FULL]
        partly = [child["route"] for match, child in matches if match is Match.PARTIAL]
        wanted[path] = (*full, *partly, None)[0]
        route = index.matches(scope)[1].get("route")
        # A path with a slash too many, or without its only one, leads to the right one.
        found[path] = route if isinstance(route, APIRoute) else None

    assert wanted == found


def test_a_server_below_a_path_finds_the_same() -> None:
    below = {"type": "http", "method": "GET", "path": "/a/b/api/status", "root_path": "/a/b"}
    match, child = ByFirstWords(ENDPOINTS).matches(below)

    assert (match, child["route"].path) == (Match.FULL, "/api/status")
