"""The endpoints of the verbs: a request's values become the arguments of the verb's function."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature
from operator import itemgetter
from types import ModuleType
from typing import Annotated, Any, TypeVar, get_args

from fastapi import APIRouter, Query
from pydantic import create_model
from pydantic.fields import FieldInfo

from services.files import Document
from services.installation import Installation
from services.verbs import UNSENT, VERBS, Verb, arguments_in_body, is_filter, is_model
from services.view import RequestBody
from web.access import in_app, of_app, of_installation
from web.bodies import (
    Body,
    ContentType,
    IdempotencyKey,
    IfMatch,
    document,
    documents,
    expected_tag,
    reads,
    reads_model,
    revision_in,
    value_of,
    with_places,
)
from web.paging import LINKED, Linked

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Function = Callable[..., Any]
Values = Mapping[str, Any]
# The functions whose endpoint does more than call them.
_OWN: set[Function] = set()


@dataclass(frozen=True)
class _Argument:
    """An argument of a verb's function: what its endpoint takes for it, and how it is read."""

    name: str
    takes: Sequence[Parameter]
    read: Callable[[Values], Any]


def serve(router: APIRouter, *offered: ModuleType | Function) -> None:
    """Add the endpoints of verbs, or of all of a module, but those with a function of their own."""
    rooms = {one.__name__ for one in offered if isinstance(one, ModuleType)}
    for function, verb in VERBS.items():
        if (function in offered or function.__module__ in rooms) and function not in _OWN:
            _add(router, function, verb, _endpoint(function, verb))


def answers(
    router: APIRouter, function: Function, **options: Any
) -> Callable[[Endpoint], Endpoint]:
    """Let an endpoint of its own answer a verb; its parameter `opened` gets the verb's right."""

    def note(endpoint: Endpoint) -> Endpoint:
        verb = VERBS[function]
        _OWN.add(function)
        signature = inspect.signature(endpoint)
        parameters = dict(signature.parameters)
        parameters["opened"] = parameters["opened"].replace(annotation=_opened(verb))
        _sign(endpoint, signature.replace(parameters=list(parameters.values())))
        _add(router, function, verb, endpoint, **options)
        return endpoint

    return note


def _add(
    router: APIRouter, function: Function, verb: Verb, endpoint: Function, **options: Any
) -> None:
    described = {"responses": LINKED} if verb.pages else {}
    router.add_api_route(
        verb.path,
        endpoint,
        name=verb.name,
        methods=[verb.method],
        status_code=verb.status,
        **({"openapi_extra": _body_of(function, verb)} | described | options),
    )


def _endpoint(function: Function, verb: Verb) -> Function:
    """Return the endpoint that calls a function with what it reads from the request."""
    signature = inspect.signature(function)
    _, *parameters = signature.parameters.values()
    arguments = [_argument(one, function, verb) for one in parameters if one.name not in UNSENT]

    def endpoint(opened: Installation, **values: Any) -> Any:
        result = function(opened, **{one.name: one.read(values) for one in arguments})
        return verb.pages(values["asked"].items(result)) if verb.pages else result

    taken = {"opened": _taken("opened", _opened(verb))}
    taken |= {one.name: one for argument in arguments for one in argument.takes}
    answer = verb.pages or signature.return_annotation
    _sign(endpoint, Signature(list(taken.values()), return_annotation=answer))
    endpoint.__name__ = verb.name
    endpoint.__doc__ = (inspect.getdoc(function) or "").partition("\n\n")[0]
    return endpoint


def _sign(endpoint: Function, signature: Signature) -> None:
    """Let FastAPI read another signature than the one in the code."""
    endpoint.__signature__ = signature  # type: ignore[attr-defined]


def _opened(verb: Verb) -> Any:
    """Return the annotation of the installation, for who has the right."""
    if verb.is_of_installation:
        right = of_installation(verb.permission)
    elif verb.is_of_app:
        right = of_app(verb.permission)
    else:
        right = in_app(verb.permission)
    return Annotated[Installation, right]


def _taken(name: str, kind: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _argument(one: Parameter, function: Function, verb: Verb) -> _Argument:
    if one.name in arguments_in_body(function):
        return _in_body(one, function, verb)
    if one.name == "expects":
        of_tag = [_taken("if_match", IfMatch, None)]
        return _Argument(one.name, of_tag, lambda v: revision_in(expected_tag(v["if_match"])))
    if one.name == "key":
        of_header = [_taken("idempotency_key", IdempotencyKey, None)]
        return _Argument(one.name, of_header, itemgetter("idempotency_key"))
    if verb.pages and one.name in {"limit", "cursor"}:
        of_page = [_taken("asked", Linked)]
        return _Argument(one.name, of_page, lambda values: getattr(values["asked"], one.name))
    if is_filter(one.annotation):
        of_fields = [_taken(one.name, Annotated[one.annotation, Query()])]
        return _Argument(one.name, of_fields, itemgetter(one.name))
    name = verb.names.get(one.name, one.name)
    is_part = f"{{{name}}}" in verb.path
    # A name such as `from` is none of a parameter in Python.
    taken = name if is_part else one.name
    kind = one.annotation if is_part else _in_query(one.annotation, name)
    return _Argument(one.name, [_taken(taken, kind, one.default)], itemgetter(taken))


def _in_query(kind: Any, name: str) -> Any:
    """Return the annotation of a query parameter for FastAPI, which has a field of its own."""
    of, *metadata = get_args(kind) if hasattr(kind, "__metadata__") else (kind,)
    fields = [one for one in metadata if isinstance(one, FieldInfo)]
    limits = [limit for one in fields for limit in one.metadata]
    description = next((one.description for one in fields), None)
    return Annotated[of, *limits, Query(alias=name, description=description)]


def _in_body(one: Parameter, function: Function, verb: Verb) -> _Argument:
    body = _taken("body", Body)
    if verb.body:
        model = _keys(function)
        return _Argument(
            one.name, [body], lambda values: getattr(value_of(values["body"], model), one.name)
        )
    if verb.kind is None:
        return _Argument(one.name, [body], lambda values: value_of(values["body"], one.annotation))
    longest = verb.kind.longest
    if one.name == "document":
        return _Argument(one.name, [body], lambda values: document(values["body"], longest))
    located = with_places if one.annotation == Sequence[Document] else list

    def read(values: Values) -> Any:
        return located(documents(values["body"], values["content_type"], longest))

    return _Argument(one.name, [body, _taken("content_type", ContentType, None)], read)


@cache
def _keys(function: Function) -> type[RequestBody]:
    """Return the model of a body whose keys are arguments of a function."""
    verb, parameters = VERBS[function], inspect.signature(function).parameters
    given = {name: parameters[name] for name in verb.body}
    fields: dict[str, Any] = {
        name: (one.annotation, ... if one.default is Parameter.empty else one.default)
        for name, one in given.items()
    }
    title = "".join(word.title() for word in verb.name.split("_"))
    return create_model(f"{title}Request", __base__=RequestBody, **fields)


def _body_of(function: Function, verb: Verb) -> dict[str, Any] | None:
    """Return what OpenAPI says of the body."""
    parameters = inspect.signature(function).parameters
    if verb.kind is not None:
        many = "documents" in parameters
        return reads(verb.kind, many=many, lines=many)
    if verb.body:
        return reads_model(_keys(function))
    models = [one.annotation for one in parameters.values() if is_model(one.annotation)]
    return reads_model(models[0]) if models else None
