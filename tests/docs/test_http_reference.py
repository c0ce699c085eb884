"""docs/reference/http.md: every endpoint with its parameters, as OpenAPI says."""

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from web.app import ROUTERS
from web.problems import KNOWN

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
ROWS = {
    endpoint: (parameters, text)
    for endpoint, parameters, text in re.findall(
        r"^\| `([A-Z]+ /\S*)` \| (.*?) ?\| (.+?) \|$", PAGE, re.M
    )
}


def operations() -> dict[str, Any]:
    app = FastAPI()
    for router in ROUTERS:
        app.include_router(router)
    return {
        f"{method.upper()} {path}": operation
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    }


OPERATIONS = operations()


def test_the_page_names_each_endpoint_and_no_other() -> None:
    assert set(ROWS) == set(OPERATIONS)


@pytest.mark.parametrize("endpoint", OPERATIONS)
def test_each_endpoint_has_its_parameters_and_its_text(endpoint: str) -> None:
    parameters, text = ROWS[endpoint]
    operation = OPERATIONS[endpoint]
    named = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]

    assert re.findall(r"`([\w-]+)`", parameters) == named
    assert text == operation["description"].splitlines()[0]


def test_the_page_names_each_problem() -> None:
    shown = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", PAGE.partition("### Changes")[0]))

    assert {kind for _, kind, _ in KNOWN.values()} <= shown
