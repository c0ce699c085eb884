"""The HTTP request for a call of a function of `views/`."""

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from cli.remote.endpoints import ENDPOINTS, Body, Endpoint
from models.errors import Refused

JSON_LINES = "application/jsonl"
# The argument that is a header.
EXPECTS = "expects"
_PART = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `places` are where its documents were read."""

    method: str
    path: str
    params: Sequence[tuple[str, str]]
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    places: Sequence[str] = field(default=())


def endpoint_of(function: Callable[..., Any]) -> Endpoint:
    """Return the endpoint of a function."""
    return ENDPOINTS[f"{function.__module__}.{function.__qualname__}".removeprefix("views.")]


def arguments_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a call by name, without the installation."""
    bound = inspect.signature(function).bind(None, *args, **kwargs)
    return dict(list(bound.arguments.items())[1:])


def request_of(endpoint: Endpoint, given: Mapping[str, Any], app: str | None) -> Request:
    """Return the request for a call's arguments; `app` is the small app, None for the token's."""
    arguments = _with_fields(endpoint, given)
    in_path = set(_PART.findall(endpoint.path))
    texts = {"app": app or "", **arguments}
    path = _PART.sub(lambda part: _segment(texts[part[1]]), endpoint.path)
    rest = {
        endpoint.names.get(name, name): value
        for name, value in arguments.items()
        if name not in {*in_path, *endpoint.fields, *endpoint.unsent, EXPECTS}
    }
    if app is not None and not endpoint.path.startswith("/api/apps/{"):
        rest["app"] = app
    content, places = _body(endpoint, arguments)
    headers = _headers(endpoint, content, arguments.get(EXPECTS))
    return Request(endpoint.method, path, _params(rest), content, headers, places)


def _headers(endpoint: Endpoint, content: bytes | None, expects: object) -> dict[str, str]:
    kind = JSON_LINES if endpoint.body is Body.LINES else "application/json"
    headers = {} if content is None else {"Content-Type": kind}
    return headers if expects is None else headers | {"If-Match": f'"{expects}"'}


def _with_fields(endpoint: Endpoint, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments, each model that is not the body replaced by its fields."""
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, BaseModel) and name not in endpoint.fields:
            arguments |= dict(value)
        else:
            arguments[name] = value
    return arguments


def _segment(value: object) -> str:
    """Return a value as one part of a path; raises Refused if it cannot be exactly one."""
    text = str(value)
    if text in {"", ".", ".."} or "/" in text:
        raise Refused(f"{text!r} cannot be part of a request's address; write the uid or id")
    return quote(text, safe="", errors="replace")


def _params(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    params: list[tuple[str, str]] = []
    for name, value in values.items():
        many = value if isinstance(value, list | tuple) else [value]
        params += [(name, _text(one)) for one in many if one is not None]
    return params


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).encode("utf-8", "replace").decode()


def _body(endpoint: Endpoint, arguments: Mapping[str, Any]) -> tuple[bytes | None, list[str]]:
    """Return the body, and the places of its documents."""
    match endpoint.body:
        case Body.NONE:
            return None, []
        case Body.FIELDS:
            return _json({name: arguments.get(name) for name in endpoint.fields}), []
        case Body.VALUE:
            (place, value) = _located(arguments[endpoint.fields[0]])
            return _json(value), place
        case Body.LINES:
            pairs = [_located(one) for one in arguments[endpoint.fields[0]]]
            lines = b"\n".join(_json(value) for _, value in pairs)
            return lines, [one for place, _ in pairs for one in place]


def _located(value: Any) -> tuple[list[str], Any]:
    """Return the place of a document, if it has one, and the document."""
    if isinstance(value, tuple):
        return [value[0]], value[1]
    return [], value


def _json(value: Any) -> bytes:
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain).encode()
