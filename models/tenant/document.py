"""The document of a small app: zone, calendars, settings, and what plug-ins add."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import InitErrorDetails

from models.action.exceptions import read_entries
from models.document import Document, as_object, read_document
from models.errors import InvalidDocument
from models.parsing import Reading
from models.problems import line_error
from models.values import FreeJson, Name, Zone, parse_list, parse_name
from runtime.plug_ins import added

DEFAULT_APP = "default"
LONGEST = 100_000
APP_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,63}")


class InvalidSmallApp(InvalidDocument):
    """The document of a small app is invalid."""


def _app_name(value: object) -> str:
    if isinstance(value, str) and APP_NAME.fullmatch(value):
        return value
    raise ValueError(
        "write 1 to 64 of: lowercase letters, digits, _ and -, with a letter or digit first; "
        'other texts fit in "title"'
    )


def _wrong_key(key: object) -> str | None:
    """Return the problem of a name that such a document gives, such as of a calendar, or None."""
    try:
        name = parse_name(key)
    except ValueError as error:
        return f"the name {error}"
    if name.startswith(".") or any(char in name for char in "/\\"):
        return "a name cannot begin with a dot or hold a slash; choose another"
    return None


def _entries(value: object) -> list[object]:
    """Return the dates of a calendar; raises all their faults."""
    values = list(parse_list(value))
    entries = read_entries(values, Reading())
    if not all(one.date for one in entries):
        raise ValueError("holds dates alone; write weekdays beside it, into the `except` of a rule")
    return values


Calendar = Annotated[list[Any], BeforeValidator(_entries)]


def _short(document: dict[str, Any]) -> dict[str, Any]:
    length = len(json.dumps(document, ensure_ascii=False, default=str))
    if length > LONGEST:
        raise ValueError(f"is too long ({length} characters of JSON); write at most {LONGEST}")
    return document


JsonDocument = Annotated[dict[str, FreeJson], BeforeValidator(as_object), AfterValidator(_short)]


class SmallAppModel(Document):
    """A small app: a tenant with its own zone, calendars and settings."""

    name: Annotated[str, BeforeValidator(_app_name)]
    title: Name | None = None
    zone: Zone = "UTC"
    # Named lists of dates and times that the rules of actions leave out by `except`.
    calendars: Annotated[dict[str, Calendar], BeforeValidator(as_object)] = Field(
        default_factory=dict
    )
    owner: Name | None = None
    settings: JsonDocument = Field(default_factory=dict)

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the problems of its names."""
        return key_problems(raw, ("calendars",))


def key_problems(raw: Mapping[str, Any], parts: Iterable[str]) -> list[InitErrorDetails]:
    """Return the problems of the names in these parts of a document."""
    return [
        line_error((part, str(key)), key, remedy)
        for part in parts
        if isinstance(raw.get(part), Mapping)
        for key in raw[part]
        if (remedy := _wrong_key(key)) is not None
    ]


@cache
def small_app_model() -> type[SmallAppModel]:
    """Return the grammar of small apps with what plug-ins add to it."""
    parts = tuple(added("app_document"))
    return type("SmallAppModel", parts, {}) if parts else SmallAppModel


def parse_small_app(document: object) -> SmallAppModel:
    """Return the small app of `document`; raises InvalidSmallApp with all problems."""
    app, problems = read_document(small_app_model(), document, Reading())
    if app is None or problems:
        raise InvalidSmallApp(problems)
    return app


def stored_small_app(app: SmallAppModel) -> dict[str, Any]:
    """Return the JSON document to store: as written, with formats resolved."""
    return app.model_dump(mode="json", exclude_unset=True)
