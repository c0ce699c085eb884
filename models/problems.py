"""Translation of pydantic's errors into problems with remedies."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import SequenceMatcher
from functools import cache
from itertools import islice

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails

from models.errors import MOST_PROBLEMS, Problem
from models.parsing import place_of
from runtime.gone import KEYS

ROOT = "document"
# Names that may be compared for the hints of one document, which may have thousands of wrong ones;
# a name that looks similar counts as many, because its comparison takes longer.
MOST_COMPARED = 5_000
SIMILAR_AT_LEAST = 0.6
_left: ContextVar[list[int] | None] = ContextVar("comparisons left", default=None)
LONGEST_SEGMENT = 60
_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s]*@")

REMEDIES = {
    "missing": "is required; add the key",
    "extra_forbidden": "is not a key that is known here; remove it",
    "bool_type": "write true or false",
    "bool_parsing": "write true or false",
    "int_type": "write a whole number",
    "int_parsing": "write a whole number",
    "int_from_float": "write a whole number",
    "float_type": "write a number",
    "float_parsing": "write a number",
    "string_type": "write a text in double quotes",
    "list_type": "write a list in [ ]",
    "tuple_type": "write a list in [ ]",
    "set_type": "write a list in [ ]",
    "dict_type": 'write an object in { }, such as {"shop": "Paris"}',
    "model_type": "write an object in { }",
    "model_attributes_type": "write an object in { }",
    "none_required": "leave the key out",
    "finite_number": "write a finite number",
    "decimal_type": "write a number",
    "decimal_parsing": "write a number",
    "date_type": 'write a date such as "2026-12-24"',
    "date_parsing": 'write a date such as "2026-12-24"',
    "date_from_datetime_parsing": 'write a date such as "2026-12-24"',
    "datetime_type": 'write an instant such as "2026-12-24T18:00:00+01:00"',
    "datetime_parsing": 'write an instant such as "2026-12-24T18:00:00+01:00"',
    "datetime_from_date_parsing": 'write an instant such as "2026-12-24T18:00:00+01:00"',
    "time_delta_type": 'write an ISO 8601 duration such as "PT5M"',
    "time_delta_parsing": 'write an ISO 8601 duration such as "PT5M"',
    "uuid_type": "write a UUID in double quotes",
    "uuid_parsing": "write a UUID in double quotes",
}

# The same with the limit that the error names.
LIMITS = {
    "greater_than": "write a number above {gt}",
    "greater_than_equal": "write {ge} or more",
    "less_than": "write a number below {lt}",
    "less_than_equal": "write {le} or less",
    "multiple_of": "write a multiple of {multiple_of}",
    "string_too_short": "write {min_length} characters or more",
    "string_too_long": "write {max_length} characters or fewer",
    "string_pattern_mismatch": "write a text that matches {pattern}",
    "too_short": "write {min_length} entries or more",
    "too_long": "write {max_length} entries or fewer",
    "literal_error": "write one of {expected}",
    "enum": "write one of {expected}",
}

EXAMPLES = {
    "name": '"name": "weekly update"',
    "operations": '"operations": {"refresh": true}',
    "when": '"when": {"cron_rule": "0 7 * * 1"}',
    "template": '"template": "welcome"',
    "delay": '"delay": "P7D"',
    "starting_at": '"starting_at": "2026-12-24T18:00:00Z"',
    "source": '"source": {"file": "sales.csv"}',
    "subject": '"subject": "News of the week"',
    "text": '"text": "Dear {{ user.name }}, …"',
    "id": 'the user\'s id, such as "ann@example.com"',
    "email": 'an e-mail address such as "ann@example.com"',
    "task": '"task": "shop.tasks.sync"',
    "url": '"url": "https://example.com/data.csv"',
    "domains": '"domains": ["sales"]',
    "data": '"data": true',
}


@contextmanager
def few_compared() -> Iterator[None]:
    """Bound the names that `nearest` compares within the block: the first wrong ones get a hint."""
    token = _left.set([MOST_COMPARED])
    try:
        yield
    finally:
        _left.reset(token)


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name nearest to `name`; None if none is near, or too many were compared."""
    names = list(known)
    left = _left.get() or [len(names) + MOST_COMPARED]
    left[0] -= len(names)
    if left[0] < 0:
        return None
    by_folded = {candidate.casefold(): candidate for candidate in names}
    wanted = str(name)[:100].casefold()
    begun = [folded for folded in by_folded if len(wanted) > 2 and folded.startswith(wanted)]
    found = begun[0] if begun else _most_similar(wanted, by_folded, left)
    return None if found is None else by_folded[found]


def _most_similar(wanted: str, known: Iterable[str], left: list[int]) -> str | None:
    """Return the name most similar to `wanted`, by the comparisons that are left."""
    best, highest = None, SIMILAR_AT_LEAST
    matcher = SequenceMatcher(b=wanted)
    for name in known:
        matcher.set_seq1(name[:100])
        if matcher.real_quick_ratio() < highest or matcher.quick_ratio() < highest:
            continue
        left[0] -= len(name) * len(wanted) // 50
        if left[0] < 0:
            break
        ratio = matcher.ratio()
        if ratio > highest or (best is None and ratio == highest):
            best, highest = name, ratio
    return best


def listed(names: Iterable[str]) -> str:
    """Return at most twelve of the names, in quotes."""
    shown = [f'"{name}"' for name in islice(names, 13)]
    return ", ".join(shown[:12]) + (", …" if len(shown) > 12 else "")


def unknown_name(what: str, name: object, known: Iterable[str], hint: str = "") -> str:
    """Return the remedy for an unknown name: the nearest known one, else all of them and `hint`."""
    if what == "key" and str(name) in KEYS:
        return f"is not a known key; {KEYS[str(name)]}"
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f'is not a known {what}; did you mean "{near}"?'
    if not names:
        return f"is not a known {what}; remove it"
    return f"is not a known {what}; known here: {listed(names)}{hint}"


def no_parameters(model: type[BaseModel], value: object = None) -> str:
    """Return what to write for a step with the parameters `model` in place of the bare `value`."""
    fields = model.model_fields
    if not fields:
        return "write true or false"
    required = [name for name, field in fields.items() if field.is_required()]
    flags = "false" if required else "true, false"
    meant = _holding(model, value)
    if meant is not None:
        return f"write {flags} or an object with parameters: {json.dumps(meant)}"
    shown = ", ".join(
        EXAMPLES.get(name, f'"{name}": …') for name in required or [next(iter(fields))]
    )
    return f"write {flags} or an object with parameters: {{{shown}}}"


def _holding(model: type[BaseModel], value: object) -> dict[str, object] | None:
    """Return the parameters that a bare text or list stands for, if they are valid."""
    if not isinstance(value, str | list) or not value or len(value) > LONGEST_SEGMENT:
        return None
    for name in model.model_fields:
        for given in (value, [value]):
            try:
                model.model_validate({name: given})
            except ValidationError:
                continue
            return {name: given}
    return None


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


def raise_all(title: str, errors: Sequence[InitErrorDetails]) -> None:
    """Raise all `errors` at once as pydantic's ValidationError; do nothing when there is none."""
    if errors:
        raise ValidationError.from_exception_data(title, list(errors))


def remedy_of(details: ErrorDetails) -> str:
    """Return what to write instead, for an error of pydantic or of our validators."""
    raised = details.get("ctx", {}).get("error")
    if details["type"] == "value_error" and raised is not None:
        return str(raised)
    if details["type"] in LIMITS:
        return LIMITS[details["type"]].format(**details.get("ctx", {}))
    if details["type"] == "missing" and details["loc"][-1] in EXAMPLES:
        return f"is required; add {EXAMPLES[str(details['loc'][-1])]}"
    if details["type"] in REMEDIES:
        return REMEDIES[details["type"]]
    message = details["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"the value {message}" if message.startswith("should") else message


def path_of(loc: Iterable[int | str]) -> str:
    """Return the path of a fault: `policy.retry.backoff[2]`; `document` for the whole."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{segment(part)}" if path else segment(part)
    return path or ROOT


def segment(key: str) -> str:
    """Return a key for use in a path: short, printable, on one line."""
    shown = "".join(char if char.isprintable() else "�" for char in key) or '""'
    return shown if len(shown) <= LONGEST_SEGMENT else shown[: LONGEST_SEGMENT - 1] + "…"


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
    """Return the keys that `model` reads, aliases included."""
    keys: list[str] = []
    for name, field in model.model_fields.items():
        keys += _aliases(field) or [name]
        if model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name"):
            keys.append(name)
    return tuple(dict.fromkeys(keys))


def _aliases(field: FieldInfo) -> list[str]:
    alias = field.validation_alias
    choices = getattr(alias, "choices", [alias])
    return [choice for choice in choices if isinstance(choice, str)]


def unknown_keys(
    model: type[BaseModel], raw: Mapping[str, object], steps: Collection[str] = ()
) -> list[InitErrorDetails]:
    """Return a fault for each key of `raw` that `model` does not read; `steps` are all known."""
    if model.model_config.get("extra") == "allow":
        return []
    known = known_keys(model)
    unknown = [key for key in raw if key not in known]
    # One more than is shown, so that the reader knows of the rest.
    return [
        line_error((str(key),), raw[key], _unknown_key(key, known, steps))
        for key in unknown[: MOST_PROBLEMS + 1]
    ]


def _unknown_key(key: str, known: Collection[str], steps: Collection[str]) -> str:
    place = place_of(key, known, steps)
    return f'is not a key here; write it in "{place}"' if place else unknown_name("key", key, known)


def null_values(model: type[BaseModel], raw: Mapping[str, object]) -> list[InitErrorDetails]:
    """Return a fault for each known key whose value is null."""
    if None not in raw.values():
        return []
    needed = {one.alias or name for name, one in model.model_fields.items() if one.is_required()}
    remedy = "null is not allowed here; leave the key out or write one"
    return [
        line_error((key,), None, _needed(key) if key in needed else remedy)
        for key in known_keys(model)
        if key in raw and raw[key] is None
    ]


def _needed(key: str) -> str:
    example = EXAMPLES.get(key)
    return (
        f"null is not allowed here; write {example}"
        if example
        else "null is not allowed; write a value"
    )
