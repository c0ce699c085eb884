"""Translation of pydantic's errors into problems with remedies."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails

from models.errors import MOST_PROBLEMS, Problem
from models.hints import path_of, unknown_name
from models.parsing import ALIASES, place_of
from models.values import INSTANT_EXAMPLE
from runtime.plug_ins import plug_ins

Key = TypeVar("Key", int, str)
Read = TypeVar("Read")
_SUFFIX = re.compile("_(?:type|parsing)$")
_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s]*@")

_OBJECT = "write an object in { }"
_TEXT = "write a text in double quotes"
_DATE = 'write a date such as "2026-12-24"'
_URL = 'write a URL such as "https://example.com/data.csv"'
# Pydantic's own texts are no advice. By kind of error, without `_type` or `_parsing`.
_TEXTS = {
    "missing": "is required; add the key",
    "extra_forbidden": "is not a key that is known here; remove it",
    **dict.fromkeys(("model", "model_attributes", "mapping", "dataclass"), _OBJECT),
    "dict": 'write an object in { }, such as {"shop": "Paris"}',
    **dict.fromkeys(("string", "string_unicode", "bytes", "json"), _TEXT),
    **dict.fromkeys(
        ("string_too_short", "bytes_too_short"), "write {min_length} or more characters"
    ),
    **dict.fromkeys(("string_too_long", "bytes_too_long"), "write at most {max_length} characters"),
    "string_pattern_mismatch": "write a text that matches {pattern}",
    "string_not_ascii": "holds a letter outside ASCII; write A to Z",
    "json_invalid": "is not JSON: {error}; correct it",
    "invalid_key": "has a key that is no text; write keys in double quotes",
    **dict.fromkeys(("literal_error", "enum"), "write one of {expected}"),
    "union_tag_invalid": "write one of {expected_tags} as {discriminator}",
    "union_tag_not_found": "lacks {discriminator}; add the key",
    "bool": "write true or false",
    **dict.fromkeys(
        ("list", "tuple", "set", "frozen_set", "deque", "iterable"), "write a list in [ ]"
    ),
    "set_item_not_hashable": "write texts or numbers",
    "too_short": "write {min_length} or more entries",
    "too_long": "write at most {max_length} entries",
    **dict.fromkeys(("int", "int_from_float"), "write a whole number"),
    "int_parsing_size": "is too large; write a whole number of fewer digits",
    **dict.fromkeys(("float", "decimal"), "write a number"),
    "decimal_max_digits": "write at most {max_digits} digits",
    "decimal_max_places": "write at most {decimal_places} decimal places",
    "decimal_whole_digits": "write at most {whole_digits} digits before the decimal point",
    "finite_number": "write a finite number",
    "greater_than": "write a value above {gt}",
    "greater_than_equal": "write {ge} or more",
    "less_than": "write a value below {lt}",
    "less_than_equal": "write {le} or less",
    "multiple_of": "write a multiple of {multiple_of}",
    **dict.fromkeys(("datetime", "datetime_from_date", "timezone_aware"), INSTANT_EXAMPLE),
    "timezone_naive": "write it without an offset",
    **dict.fromkeys(("datetime_past", "date_past"), "is not in the past; write an earlier one"),
    **dict.fromkeys(("datetime_future", "date_future"), "is not in the future; write a later one"),
    **dict.fromkeys(("date", "date_from_datetime", "date_from_datetime_inexact"), _DATE),
    "time": 'write a time such as "09:00"',
    "time_delta": 'write an ISO 8601 duration such as "PT5M"',
    "uuid": 'write an id such as "4b4eb3de-7a1c-5d0e-9d0f-3f3c6a0c2b1e"',
    **dict.fromkeys(("url", "url_scheme", "url_syntax_violation"), _URL),
    "url_too_long": "write at most {max_length} characters",
    "none_required": "write null",
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
    error: ValidationError, under: tuple[int | str, ...] = (), known: Collection[str] = ()
) -> list[InitErrorDetails]:
    """Return the faults of `error`, moved below `under`; `known` are the keys of the object."""
    found = []
    for details in error.errors(include_url=False):
        loc, kind = details["loc"], details["type"]
        value = None if kind == "missing" else details["input"]
        is_key = known and kind == "extra_forbidden" and len(loc) == 1
        remedy = unknown_key(str(loc[0]), known) if is_key else remedy_of(details)
        found.append(line_error((*under, *loc), value, remedy))
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
    kind, context = details["type"], details.get("ctx", {})
    raised = context.get("error")
    if isinstance(raised, Exception):
        return str(raised)
    if kind == "missing" and details["loc"][-1] in EXAMPLES:
        return f"is required; add {EXAMPLES[str(details['loc'][-1])]}"
    if text := _TEXTS.get(kind) or _TEXTS.get(_SUFFIX.sub("", kind)):
        # Not by `format`: a text may show an object in braces.
        for name, value in context.items():
            shown = f"{value:.15g}" if isinstance(value, float) else str(value)
            text = text.replace(f"{{{name}}}", shown)
        return text
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
