"""A small app as an admin writes it: its zone, its domains with their sources, its templates."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field
from pydantic_core import InitErrorDetails

from models.app_people import Groups, People, Users, faults_of_people
from models.app_settings import AppSettings
from models.context import Reading
from models.document import Document, read_document
from models.errors import InvalidDocument
from models.problems import line_error
from models.values import Flag, Name, Url, Zone, one_of, parse_name, parse_text
from models.zones import parse_zone

DEFAULT_APP = "default"
FORMATS = {".csv": "csv", ".json": "json"}
LONGEST_TEMPLATE = 100_000
LONGEST_SUBJECT = 500
PEOPLE = {"users", "groups", "users_complete"}
_APP_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,63}")

Format = Literal["csv", "json"]


class InvalidSmallApp(InvalidDocument):
    """A small app's document has faults."""


def _app_name(value: object) -> str:
    if isinstance(value, str) and _APP_NAME.fullmatch(value):
        return value
    raise ValueError(
        "write 1 to 64 of: small letters, digits, _ and -, with a letter or digit first; "
        'other texts fit in "title"'
    )


def _wrong_key(key: object) -> str | None:
    """Return what is wrong with the name of a domain or template; it is part of paths."""
    try:
        name = parse_name(key)
    except ValueError as error:
        return f"the name {error}"
    if name.startswith(".") or any(char in name for char in "/\\"):
        return "a name cannot begin with a dot or hold a slash; choose another"
    return None


def _file(value: object) -> str:
    path = parse_name(value, most=500)
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in path or re.match("[A-Za-z]:", path):
        raise ValueError('write a path inside the data folder, such as "sales/2026.csv"')
    return path


def _mapping(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("write an object in { }: one key for each name")
    return value


Body = Annotated[str, BeforeValidator(partial(parse_text, most=LONGEST_TEMPLATE))]


class SourceModel(Document):
    """Where a domain's data comes from: a file under the data folder, or a URL; one of the two."""

    file: Annotated[str, BeforeValidator(_file)] | None = None
    url: Url | None = None

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the fault of a source that is not exactly one of file and URL."""
        if ("file" in raw) == ("url" in raw):
            remedy = (
                'write either {"file": "sales.csv"} or {"url": "https://example.com/sales.csv"}'
            )
            return [line_error((), dict(raw), remedy)]
        return []


class DomainModel(Document):
    """A data domain: its source, and the format of what is read there."""

    source: SourceModel
    format: Annotated[Format, BeforeValidator(one_of("csv", "json"))]

    @classmethod
    def completed(cls, raw: dict[str, Any], _reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the format that the source's suffix tells."""
        if "format" in raw:
            return raw
        found = FORMATS.get(_suffix(raw.get("source")))
        return {**raw, "format": found} if found else raw


class TemplateModel(Document):
    """A mail: its subject, its text, and the same in HTML where wanted."""

    subject: Annotated[str, BeforeValidator(partial(parse_name, most=LONGEST_SUBJECT))]
    text: Body
    html: Body | None = None


class SmallAppModel(Document):
    """A small app: a tenant with its own zone, domains, templates, people and settings.

    `notify` false silences the "new data available" mails of this app. People are not part of the
    document that is stored: they have tables of their own, which others change too.
    """

    name: Annotated[str, BeforeValidator(_app_name)]
    title: Name | None = None
    zone: Zone = "UTC"
    domains: Annotated[dict[str, DomainModel], BeforeValidator(_mapping)] = Field(
        default_factory=dict
    )
    templates: Annotated[dict[str, TemplateModel], BeforeValidator(_mapping)] = Field(
        default_factory=dict
    )
    notify: Flag = True
    owner: Name | None = None
    settings: AppSettings = Field(default_factory=dict)
    users: Users = ()
    groups: Groups | None = None
    users_complete: Flag = False

    @property
    def people(self) -> People:
        """What the document says of users and groups."""
        return People(self.users, self.groups, self.users_complete)

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the faults of the names of domains and templates, and of the people."""
        return faults_of_people(raw) + [
            line_error((part, str(key)), key, remedy)
            for part in ("domains", "templates")
            if isinstance(raw.get(part), Mapping)
            for key in raw[part]
            if (remedy := _wrong_key(key)) is not None
        ]


def parse_small_app(document: object) -> SmallAppModel:
    """Return the small app that `document` writes; raises InvalidSmallApp with all problems.

    Instants of users without an offset are read in its zone.
    """
    app, problems = read_document(SmallAppModel, document, Reading(default_zone=_zone(document)))
    if app is None or problems:
        raise InvalidSmallApp(problems)
    return app


def stored_small_app(app: SmallAppModel) -> dict[str, Any]:
    """Return the document to store: JSON, as it was written, formats resolved, without people."""
    return app.model_dump(mode="json", exclude_unset=True, exclude=PEOPLE)


def _zone(document: object) -> str:
    try:
        return parse_zone(document.get("zone", "UTC")) if isinstance(document, dict) else "UTC"
    except ValueError:
        return "UTC"


def _suffix(source: object) -> str:
    if not isinstance(source, Mapping):
        return ""
    path = source.get("file")
    if not isinstance(path, str):
        try:
            path = urlsplit(str(source.get("url", ""))).path
        except ValueError:
            return ""
    return PurePosixPath(path).suffix.lower()
