"""Each verb over HTTP is its function: the same arguments, answer, errors and exit codes."""

import types
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import wraps
from inspect import signature
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from pydantic import JsonValue, TypeAdapter

from cli.main import run
from cli.remote.server import Remote
from models.errors import (
    BrokerUnavailable,
    InvalidDocument,
    NotFound,
    Outdated,
    Problem,
    Refused,
    SchedulerError,
)
from models.roles import Role
from services import steps, tokens
from services.installation import Installation
from services.jobs.documents import NewJob
from services.verbs import UNSENT, VERBS
from tests.web_server import serving
from web import app as web_app
from web import verbs
from web.routing import endpoints

Function = Callable[..., Any]
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
# Loads the verbs of plug-ins too.
web_app.api_routers()
# Those whose endpoint does more than call them are proven where they are.
SERVED = [one for one in VERBS if one not in verbs._OWN]
SAMPLES: dict[Any, Any] = {
    str: "a/b c?&#%2Fü",
    int: 7,
    float: 0.5,
    bool: True,
    datetime: NOON,
    UUID: UUID(int=7),
    object: {"name": "x"},
    # Where a document was read is told by the command line alone.
    tuple[str, object]: ("", {"name": "x"}),
    Any: {"a": [1, None]},
    JsonValue: {"a": [1, None]},
    NewJob: NewJob(url="https://example.com/feed", meta={"depth": 2}),
}
# The small app of the command, and a header.
BY_NAME = {"app": "default", "key": "deploy 7"}


def sample(kind: Any) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if kind in SAMPLES:
        return SAMPLES[kind]
    if origin in {Annotated, Literal}:
        return sample(parts[0]) if origin is Annotated else parts[0]
    if origin in {Union, types.UnionType}:
        return sample(next(one for one in parts if one is not type(None)))
    if isinstance(origin, type) and issubclass(origin, Collection):
        return _many(origin, parts)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return list(kind)[-1]
    return filled(kind)


def _many(origin: type, parts: tuple[Any, ...]) -> Any:
    if issubclass(origin, Mapping):
        return {sample(parts[0]): sample(parts[1])}
    if origin is tuple and parts[-1] is not ...:
        return tuple(map(sample, parts))
    return (tuple if origin is tuple else list)([sample(parts[0])])


def written(value: Any) -> str:
    return TypeAdapter(type(value)).dump_json(value).decode()


def filled(model: Any) -> Any:
    """Return a model or a data class, each field with a value."""
    if not hasattr(model, "model_fields"):
        return model(**{name: sample(kind) for name, kind in get_type_hints(model).items()})
    model.model_rebuild()
    fields = {name: sample(one.annotation) for name, one in model.model_fields.items()}
    return model(fields["root"]) if set(fields) == {"root"} else model(**fields)


@dataclass
class Served:
    """A server on which each verb only notes its call, and answers or fails as it is told."""

    url: str
    token: str
    opened: Installation
    answer: Any = None
    calls: list[tuple[Function, dict[str, Any]]] = field(default_factory=list)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    opened = Installation(tmp_path_factory.mktemp("served"))
    made = Served("", tokens.create(opened, Role.ADMIN, None).token, opened)
    router = endpoints("tests")
    with pytest.MonkeyPatch.context() as patch:
        for function in SERVED:
            noted = _noting(function, made)
            patch.setitem(VERBS, noted, VERBS[function])
            verbs.serve(router, noted)
        patch.setattr(web_app, "ROUTERS", (router,))
        with serving(web_app.make_app(opened), opened.settings.web) as made.url:
            yield made
    opened.engine.dispose()


def _noting(function: Function, served: Served) -> Function:
    @wraps(function)
    def noted(_opened: Installation, **given: Any) -> Any:
        served.calls.append((function, given))
        if isinstance(served.answer, Exception):
            raise served.answer
        return served.answer

    return noted


def sent_to(function: Function) -> dict[str, Any]:
    """Return an argument for each parameter that goes over HTTP."""
    parameters = list(signature(function).parameters.values())[1:]
    names = VERBS[function].names
    return {
        one.name: BY_NAME.get(names.get(one.name, one.name), sample(one.annotation))
        for one in parameters
        if one.name not in UNSENT
    }


@pytest.mark.parametrize("function", SERVED, ids=lambda one: VERBS[one].name)
def test_a_verb_gets_its_arguments_and_its_answer_comes_back(
    served: Served, function: Function
) -> None:
    given, kind = sent_to(function), signature(function).return_annotation
    served.answer = filled(kind)
    with closing(Remote(served.url, served.token, "default")) as server:
        answer = server.call(function, **given)

    called, got = served.calls[-1]
    assert (called, {name: got[name] for name in given}) == (function, given)
    assert written(answer) == written(served.answer)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(NotFound("no action is named 'x'"), 2, id="not_found"),
        pytest.param(Refused("'x' is paused; resume it first"), 2, id="refused"),
        pytest.param(Outdated("it is at revision 2, not 1"), 2, id="outdated"),
        pytest.param(
            InvalidDocument(
                [Problem("when", 5, "write an object"), Problem("name", "", "is empty")]
            ),
            2,
            id="invalid",
        ),
        pytest.param(BrokerUnavailable("the broker does not answer"), 1, id="broker_away"),
        pytest.param(SchedulerError("it could not be done"), 1, id="failed"),
    ],
)
def test_an_error_of_a_verb_is_the_same_for_who_asked(
    served: Served, capsys: pytest.CaptureFixture[str], error: SchedulerError, code: int
) -> None:
    served.answer = error

    with closing(Remote(served.url, served.token)) as server, pytest.raises(type(error)) as raised:
        server.call(steps.list_steps)
    ended = run(["--url", served.url, "--token", served.token, "step", "list"])

    told = capsys.readouterr().err
    assert (str(raised.value), ended) == (str(error), code)
    assert told == "".join(f"error: {line}\n" for line in str(error).splitlines())
