"""Commands made from the verbs, as `web/verbs.py` makes their endpoints.

What must be given is an argument; the rest are options.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from cli.arguments import backend, existing
from cli.render import show
from models.errors import InvalidDocument, Refused
from models.problems import problems_of
from services.backend import every
from services.verbs import UNSENT, VERBS, is_filter, is_model

CREATED = 201
Function = Callable[..., Any]
Command = Callable[..., None]
# What must be given and stands in no path is an option if people would not know it by its place.
NAMED = {"role", "to", "url", "user"}
# What only requests and pages have.
UNASKED = UNSENT | {"limit", "cursor", "expects", "key"}
# What is given one by one.
ONE_OF = {"groups": "--group"}
# The parts of paths.
PARTS = {
    "app": "Name of a small app.",
    "id": "Its id, as a list shows it.",
    "name": "Its name.",
    "template": "Name of a template.",
    "user": "Id of a user.",
}


def offer(group: typer.Typer, *, is_anywhere: bool = False, **functions: Function) -> None:
    """Add commands to a group: their names, and the verbs' functions.

    `is_anywhere`: they need no installation.
    """
    for name, function in functions.items():
        text = (inspect.getdoc(function) or "").partition("\n\n")[0]
        group.command(name.replace("_", "-"), help=text)(_command(function, is_anywhere))


def with_fields(command: Command) -> Command:
    """Return a command that has an option for each field of its parameters that are models."""
    given = inspect.signature(command, eval_str=True).parameters.values()
    models = {one.name: one.annotation for one in given if _has_fields(one.annotation)}

    @wraps(command)
    def filled(**values: Any) -> None:
        for name, model in models.items():
            values[name] = _filled(model, values)
        command(**values)

    taken = [new for one in given for new in _parameters(one)]
    return _signed(filled, taken)


def _filled(model: type[BaseModel], values: dict[str, Any]) -> BaseModel:
    """Take the fields of a model out of values; raises InvalidDocument and Refused."""
    taken = {name: (field, values.pop(name)) for name, field in _fields(model).items()}
    given = {name: _read(*one) for name, one in taken.items() if one[1] is not None}
    try:
        return model(**given)
    except ValidationError as error:
        raise InvalidDocument(problems_of(error)) from None


def _fields(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    return {
        name: field
        for name, field in model.model_fields.items()
        if not str(field.description).startswith("Ignored")
    }


def _read(field: FieldInfo, value: Any) -> Any:
    """Return a field's value: an object of pairs; of a list what is not empty, as '' empties it."""
    if get_origin(field.annotation) is dict:
        pairs = [text.partition("=") for text in value]
        wrong = [text for text, equals, _ in pairs if not (text and equals)]
        if wrong:
            raise Refused(f"{wrong[0]!r} has no value; write NAME=VALUE")
        return {name: text for name, _, text in pairs}
    return tuple(filter(None, value)) if isinstance(value, list) else value


def _command(function: Function, is_anywhere: bool) -> Command:
    verb = VERBS[function]
    # What is made first makes the installation too.
    asked = backend if is_anywhere or verb.status == CREATED else existing
    arguments = {name: argument for argument, name in verb.names.items()}

    def command(context: typer.Context, **values: Any) -> None:
        opened = asked(context)
        given = {arguments.get(name, name): value for name, value in values.items()}
        if verb.pages is None:
            show(context, opened.call(function, **given))
        else:
            show(context, verb.pages(every(opened, function, **given)))

    parameters = [Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for one in list(inspect.signature(function).parameters.values())[1:]:
        part = verb.names.get(one.name, one.name)
        if f"{{{part}}}" in verb.path:
            is_part = Annotated[str, typer.Argument(help=PARTS[part], metavar=part.upper())]
            parameters.append(_keyword(part, is_part))
        elif one.name not in UNASKED:
            parameters.append(_keyword(part, one.annotation, one.default))
    return with_fields(_signed(command, parameters))


def _signed(command: Command, parameters: Sequence[Parameter]) -> Command:
    """Return a command of which Typer reads these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    return command


def _keyword(name: str, kind: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _has_fields(kind: Any) -> bool:
    return is_model(kind) or is_filter(kind)


def _parameters(one: Parameter) -> Sequence[Parameter]:
    """Return what Typer takes for a parameter: itself if it has words, or the fields of a model."""
    if _has_fields(one.annotation):
        return [
            _worded(name, field.annotation, field.is_required(), field.default, field.description)
            for name, field in _fields(one.annotation).items()
        ]
    kind, *notes = get_args(one.annotation) if _is_annotated(one) else (one.annotation,)
    if kind is typer.Context or any(not isinstance(note, FieldInfo) for note in notes):
        return [one.replace(kind=Parameter.KEYWORD_ONLY)]
    text = next((note.description for note in notes), None)
    return [_worded(one.name, kind, one.default is Parameter.empty, one.default, text)]


def _is_annotated(one: Parameter) -> bool:
    return get_origin(one.annotation) is Annotated


def _worded(name: str, kind: Any, is_needed: bool, default: Any, text: str | None) -> Parameter:
    """Return an argument, or an option."""
    kind = _of_typer(kind)
    if is_needed and name not in NAMED:
        return _keyword(name, Annotated[kind, typer.Argument(help=text, metavar=name.upper())])
    flag = f"--{name.removesuffix('_s').replace('_', '-')}"
    names = [ONE_OF.get(name, flag)]
    if kind is bool:
        names = [flag] if default is False else [f"{flag}/--no-{flag[2:]}"]
    option = typer.Option(*names, help=text, show_default=False)
    if is_needed:
        return _keyword(name, Annotated[kind, option])
    if default is False:
        return _keyword(name, Annotated[bool, option], False)
    return _keyword(name, Annotated[kind | None, option], None)


def _of_typer(kind: Any) -> Any:
    """Return a type without None, and a list for a tuple or a sequence."""
    if get_origin(kind) in {Union, UnionType}:
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    of = get_args(kind)
    return list.__class_getitem__(of[0]) if of else kind
