"""web/verbs.py: each verb has one endpoint, with its right, its parameters and its text."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import Field

from models.roles import Permission
from services.installation import Installation
from services.verbs import VERBS, Verb
from services.view import View
from web.access import ACCESS, Access
from web.app import api_routers
from web.routing import endpoints
from web.verbs import answers, serve

ROUTES = [
    route for router in api_routers() for route in router.routes if isinstance(route, APIRoute)
]


class Row(View):
    """A row."""

    id: str


@pytest.fixture(autouse=True)
def only_its_own() -> Iterator[None]:
    """Forget the verbs of a test."""
    verbs = dict(VERBS)
    yield
    VERBS.clear()
    VERBS.update(verbs)


def test_each_verb_has_one_endpoint() -> None:
    counted = Counter(f"{method} {one.path}" for one in ROUTES for method in one.methods or ())

    assert {f"{one.method} {one.path}": 1 for one in VERBS.values()}.items() <= counted.items()


def test_the_endpoint_is_made_of_the_signature_and_the_first_paragraph() -> None:
    @Verb("count_rows", "GET /api/rows?much=most", Permission.READ)
    def count(
        installation: Installation,
        most: Annotated[int, Field(ge=1, le=9, description="How many.")] = 5,
    ) -> Row:
        """Count the rows.

        Raises NotFound.
        """
        raise NotImplementedError

    app, router = FastAPI(), endpoints("tests")
    serve(router, count)
    app.include_router(router)
    said = app.openapi()["paths"]["/api/rows"]["get"]

    assert (said["operationId"], said["description"]) == ("count_rows", "Count the rows.")
    (much,) = (one for one in said["parameters"] if one["name"] == "much")
    assert much["description"] == "How many."
    assert {key: much["schema"][key] for key in ("minimum", "maximum", "default")} == {
        "minimum": 1, "maximum": 9, "default": 5,
    }  # fmt: skip


@pytest.mark.parametrize("is_of_installation", [True, False])
def test_the_right_of_an_endpoint_of_its_own_is_that_of_the_verb(is_of_installation: bool) -> None:
    @Verb("act", "POST /api/rows:act", Permission.OPERATE, is_of_installation=is_of_installation)
    def act(installation: Installation) -> Row:
        """Act."""
        raise NotImplementedError

    router = endpoints("tests")

    @answers(router, act)
    def act_and_more(opened: Installation) -> Row:
        """Act, and more."""
        raise NotImplementedError

    serve(router, act)
    (route,) = router.routes
    assert isinstance(route, APIRoute)

    (access,) = (ACCESS[one.call] for one in route.dependant.dependencies if one.call in ACCESS)
    assert access == Access(Permission.OPERATE, is_of_installation)
    assert route.endpoint is act_and_more
