"""The HTTP request for a call of a function of `services/`."""

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from models.errors import Refused
from services.verbs import UNSENT, VERBS, arguments_in_body

JSON_LINES = "application/jsonl"
# The argument whose items are sent one a line.
LINES = ("documents",)
# The arguments that are headers.
HEADERS = {"expects": ("If-Match", '"{}"'), "key": ("Idempotency-Key", "{}")}
Function = Callable[..., Any]
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


def arguments_of(function: Function, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a call by name, without the installation."""
    bound = inspect.signature(function).bind(None, *args, **kwargs)
    return dict(list(bound.arguments.items())[1:])


def request_of(function: Function, given: Mapping[str, Any], app: str | None) -> Request:
    """Return the request for a call's arguments; `app` is the small app, None for the token's."""
    verb, in_body = VERBS[function], arguments_in_body(function)
    arguments = _with_fields(given, in_body)
    named = {
        verb.names.get(name, name): value
        for name, value in arguments.items()
        if name not in {*in_body, *UNSENT, *HEADERS}
    }
    # An argument is the small app, or the command's is.
    texts = {"app": app or ""} | named
    path = _PART.sub(lambda part: _segment(texts[part[1]]), verb.path)
    rest = {name: value for name, value in named.items() if f"{{{name}}}" not in verb.path}
    if app is not None and not verb.is_of_app:
        rest["app"] = app
    content, places = _body([arguments.get(name) for name in in_body], in_body)
    headers = _headers(arguments)
    if content is not None:
        headers["Content-Type"] = JSON_LINES if in_body == LINES else "application/json"
    return Request(verb.method, path, _params(rest), content, headers, places)


def _headers(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {
        header: form.format(arguments[name])
        for name, (header, form) in HEADERS.items()
        if arguments.get(name) is not None
    }


def _with_fields(given: Mapping[str, Any], in_body: Sequence[str]) -> dict[str, Any]:
    """Return the arguments, each model that is not the body replaced by its fields."""
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, BaseModel) and name not in in_body:
            arguments |= dict(value)
        else:
            arguments[name] = value
    return arguments


def _segment(value: object) -> str:
    """Return a value as one part of a path; raises Refused if it cannot be exactly one."""
    text = str(value)
    if text in {"", ".", ".."}:
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


def _body(values: Sequence[Any], names: Sequence[str]) -> tuple[bytes | None, list[str]]:
    """Return the body of arguments, and the places of its documents."""
    if not names:
        return None, []
    if len(names) > 1:
        return _json(dict(zip(names, values, strict=True))), []
    if names != LINES:
        place, value = _located(values[0])
        return _json(value), place
    pairs = [_located(one) for one in values[0]]
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
