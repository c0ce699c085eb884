"""Translation of pydantic's errors into problems with remedies."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails

from models.errors import MOST_PROBLEMS, Problem
from models.hints import path_of, unknown_name
from models.places import ALIASES, place_of
from runtime.plug_ins import plug_ins

Key = TypeVar("Key", int, str)
Read = TypeVar("Read")
_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s]*@")

# Where pydantic's own text is no advice.
_TEXTS = {
    "missing": "is required; add the key",
    "extra_forbidden": "is not a key that is known here; remove it",
    "model_type": "write an object in { }",
    "model_attributes_type": "write an object in { }",
    "dict_type": 'write an object in { }, such as {"shop": "Paris"}',
    "string_type": "write a text in double quotes",
    "literal_error": "write one of {expected}",
    "enum": "write one of {expected}",
    **dict.fromkeys(("bool_type", "bool_parsing"), "write true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type"), "write a list in [ ]"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "write a whole number"),
}

EXAMPLES = {
    "name": '"name": "weekly update"',
    "operations": '"operations": {"maintenance": true}',
    "when": '"when": {"cron_rule": "0 7 * * 1"}',
    "delay": '"delay": "P7D"',
    "starting_at": '"starting_at": "2026-12-24T18:00:00Z"',
    "id": 'the user\'s id, such as "ann@example.com"',
    "email": 'an e-mail address such as "ann@example.com"',
    "task": '"task": "shop.tasks.sync"',
    "run": '"run": ["./backup.sh"]',
    "url": '"url": "https://example.com/data.csv"',
    **{name: text for one in plug_ins() for name, text in one.examples.items()},
}


def no_parameters(model: type[BaseModel]) -> str:
    """Return what to write for a step with the parameters `model` in place of a bare value."""
    fields = model.model_fields
    if not fields:
        return "write true or false"
    needed = [name for name, field in fields.items() if field.is_required()]
    name = (needed or [*fields])[0]
    example = EXAMPLES.get(name, f'"{name}": …')
    flags = "false" if needed else "true, false"
    return f"write {flags} or an object with parameters: {{{example}}}"


def line_error(loc: tuple[int | str, ...], value: object, remedy: str) -> InitErrorDetails:
    """Return one fault in the form in which pydantic passes it to the root document."""
    return {
        "type": "value_error",
        "loc": loc,
        "input": value,
        "ctx": {"error": ValueError(remedy)},
    }


def line_errors(
    error: ValidationError, under: tuple[int | str, ...] = ()
) -> list[InitErrorDetails]:
    """Return the faults of `error`, moved below `under`."""
    found = []
    for details in error.errors(include_url=False):
        value = None if details["type"] == "missing" else details["input"]
        found.append(line_error((*under, *details["loc"]), value, remedy_of(details)))
    return found


def read_each(
    values: Iterable[tuple[Key, object]], read: Callable[[Key, object], Read]
) -> tuple[list[Read], list[InitErrorDetails]]:
    """Return what `read` makes of each key and value, and the faults of all, below their keys."""
    found, faults = [], []
    for key, value in values:
        try:
            found.append(read(key, value))
        except ValidationError as error:
            faults += line_errors(error, under=(key,))
        except ValueError as error:
            faults.append(line_error((key,), value, str(error)))
    return found, faults


def raise_all(title: str, errors: Sequence[InitErrorDetails]) -> None:
    """Raise all `errors` at once as pydantic's ValidationError; do nothing when there is none."""
    if errors:
        raise ValidationError.from_exception_data(title, list(errors))


def remedy_of(details: ErrorDetails) -> str:
    """Return what to write instead, for an error of pydantic or of our validators."""
    context = details.get("ctx", {})
    raised = context.get("error")
    if details["type"] == "value_error" and raised is not None:
        return str(raised)
    if details["type"] == "missing" and details["loc"][-1] in EXAMPLES:
        return f"is required; add {EXAMPLES[str(details['loc'][-1])]}"
    if details["type"] in _TEXTS:
        return _TEXTS[details["type"]].replace(
            "{expected}", details.get("ctx", {}).get("expected", "")
        )
    message = details["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"the value {message}" if message.startswith("should") else message


def problems_of(error: ValidationError) -> list[Problem]:
    """Return the faults of `error`, one per path, in the order of the models' fields."""
    found: dict[str, Problem] = {}
    for details in line_errors(error):
        loc = details.get("loc", ())
        remedy = str(details["ctx"]["error"])
        value = _without_password(details["input"])
        found.setdefault(path_of(loc), Problem(path_of(loc), value, remedy))
    return list(found.values())


def _without_password(value: object) -> object:
    """Return a value without the password of a URL in it, well-formed or not."""
    return _PASSWORD.sub(r"\1***@", value) if isinstance(value, str) else value


@cache
def known_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys that `model` reads."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def unknown_keys(model: type[BaseModel], raw: Mapping[str, object]) -> list[InitErrorDetails]:
    """Return a fault for each key of `raw` that `model` does not read."""
    if model.model_config.get("extra") == "allow":
        return []
    known = known_keys(model)
    unknown = [key for key in raw if key not in known]
    # One more than is shown, so that the reader knows of the rest.
    return [
        line_error((str(key),), raw[key], unknown_key(str(key), known))
        for key in unknown[: MOST_PROBLEMS + 1]
    ]


def unknown_key(key: str, known: Collection[str], what: str = "key", hint: str = "") -> str:
    """Return the remedy for an unknown key: its place if that is another, else `unknown_name`."""
    return place_of(key, {*known}) or unknown_name(what, ALIASES.get(key, key), known, hint)


def null_values(model: type[BaseModel], raw: Mapping[str, object]) -> list[InitErrorDetails]:
    """Return a fault for each known key whose value is null."""
    needed = {one.alias or name for name, one in model.model_fields.items() if one.is_required()}
    remedy = "null is not allowed; write a value"
    return [
        line_error((key,), None, remedy if key in needed else f"{remedy}, or leave the key out")
        for key, value in raw.items()
        if value is None and key in known_keys(model)
    ]
