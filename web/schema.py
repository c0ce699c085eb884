"""The OpenAPI document: what FastAPI derives, with its schemas in one place."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from web.problems import MEDIA_TYPE, ProblemDetails

SCHEMAS = "#/components/schemas/"
PROBLEM = {"$ref": f"{SCHEMAS}{ProblemDetails.__name__}"}
# What FastAPI answers to an invalid request unless it is told otherwise.
FASTAPIS_OWN = ("HTTPValidationError", "ValidationError")


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of an app; made once, as FastAPI does."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.state.endpoints,
        )
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        _add(schemas, ProblemDetails.__name__, ProblemDetails.model_json_schema())
        _hoist(made["paths"], schemas)
        for path in made["paths"].values():
            for operation in path.values():
                _state_problems(operation["responses"])
        for unused in FASTAPIS_OWN:
            schemas.pop(unused, None)
        app.openapi_schema = made
    return app.openapi_schema


def _state_problems(responses: dict[str, Any]) -> None:
    """State that each answer but a success is a problem."""
    problem = {"description": "Why not.", "content": {MEDIA_TYPE: {"schema": PROBLEM}}}
    for status in [status for status in responses if status[0] in "45"]:
        del responses[status]
    responses |= {"4XX": problem, "5XX": problem}


def _hoist(node: Any, schemas: dict[str, Any]) -> None:
    """Move the definitions that pydantic leaves within a schema to where references look."""
    if isinstance(node, dict):
        for name, schema in node.pop("$defs", {}).items():
            _add(schemas, name, schema)
        reference = node.get("$ref")
        if isinstance(reference, str):
            node["$ref"] = reference.replace("#/$defs/", SCHEMAS)
    if isinstance(node, dict | list):
        for child in node.values() if isinstance(node, dict) else node:
            _hoist(child, schemas)


def _add(schemas: dict[str, Any], name: str, schema: dict[str, Any]) -> None:
    _hoist(schema, schemas)
    if schemas.setdefault(name, schema) != schema:
        raise ValueError(f"two schemas are named {name}")
