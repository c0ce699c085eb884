"""docs/reference/http: every endpoint with its parameters, as OpenAPI says."""

import re
from functools import cache
from typing import Any

import pytest
from fastapi import FastAPI

from data.services.status import DataStatus, PublicStatus
from tests.docs.pages import text_of
from web.app import api_routers
from web.problems import KNOWN

TEXT = text_of("reference/http")
ROWS = {
    endpoint: (parameters, text)
    for endpoint, parameters, text in re.findall(
        r"^\| `([A-Z]+ /\S*)` \| (.*?) ?\| (.+?) \|$", TEXT, re.M
    )
}


def _section(heading: str) -> str:
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@cache
def operations() -> dict[str, Any]:
    """Return the operations by method and path; they take a second to make, so no import does."""
    app = FastAPI()
    for router in api_routers():
        app.include_router(router)
    return {
        f"{method.upper()} {path}": operation
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    }


def test_the_pages_name_each_endpoint_and_no_other() -> None:
    assert set(ROWS) == set(operations())


@pytest.mark.parametrize("endpoint", ROWS)
def test_each_endpoint_has_its_parameters_and_its_text(endpoint: str) -> None:
    parameters, text = ROWS[endpoint]
    operation = operations()[endpoint]
    named = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]

    assert re.findall(r"`([\w-]+)`", parameters) == named
    assert text == operation["description"].splitlines()[0]


def test_a_page_describes_each_field_of_the_status_of_data() -> None:
    section = _section("The status of a small app's data")
    table, _, public = section.partition("`GET /status/{app}.json`")
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", table, re.M)
    described = [name for row in rows for name in re.findall(r"`([a-z_]+)`", row)]

    assert sorted(described) == sorted(DataStatus.model_fields)
    assert set(re.findall(r"`([a-z_]+)`", public)) >= set(PublicStatus.model_fields)


def test_a_page_names_each_problem() -> None:
    shown = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", _section("Errors")))

    assert {kind for _, kind, _ in KNOWN.values()} <= shown
