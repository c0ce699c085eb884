"""The document of a small app: zone, domains with their sources, templates, people, settings."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import InitErrorDetails

from models.action.exceptions import read_entries
from models.action.recipients import EVERYBODY, RecipientFilterModel
from models.document import Document, as_object, read_document
from models.errors import InvalidDocument
from models.parsing import Reading
from models.problems import line_error
from models.tenant.people import Groups, People, Users, people_problems
from models.tenant.sources import DomainModel
from models.tenant.staged import KINDS, Documents, JsonDocument
from models.values import Flag, Name, Zone, parse_line, parse_list, parse_name, parse_text
from models.values.zones import parse_zone

DEFAULT_APP = "default"
# Owner of the actions that every small app gets by default.
LONGEST_TEMPLATE = 100_000
LONGEST_SUBJECT = 500
PEOPLE = {"users", "groups", "users_complete"}
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


def _wrong_key(part: str, key: object) -> str | None:
    """Return the problem of the name of a group, domain, template or document, or None."""
    try:
        name = parse_name(key)
    except ValueError as error:
        return f"the name {error}"
    if part == "groups":
        return '"all" always contains every user; leave it out' if name == EVERYBODY else None
    if name.startswith(".") or any(char in name for char in "/\\"):
        return "a name cannot begin with a dot or hold a slash; choose another"
    return None


Body = Annotated[str, BeforeValidator(partial(parse_text, most=LONGEST_TEMPLATE))]


def _entries(value: object) -> list[object]:
    """Return the dates of a calendar; raises all their faults."""
    values = list(parse_list(value))
    entries = read_entries(values, Reading())
    if not all(one.date for one in entries):
        raise ValueError("holds dates alone; write weekdays beside it, into the `except` of a rule")
    return values


Calendar = Annotated[list[Any], BeforeValidator(_entries)]


class TemplateModel(Document):
    """A mail template: its subject, its text, and an optional HTML version."""

    subject: Annotated[str, BeforeValidator(partial(parse_line, most=LONGEST_SUBJECT))]
    text: Body
    html: Body | None = None


class SmallAppModel(Document):
    """A small app: a tenant with its own zone, domains, templates, people and settings.

    `notify` false silences the "new data available" mails of this app, unless a publish requests
    one; `notify_recipients` selects their recipients, by default all users. `public_status` shows
    how fresh the data are to people without an account. The stored document
    has no people: they have their own tables, which other commands change too.
    """

    name: Annotated[str, BeforeValidator(_app_name)]
    title: Name | None = None
    zone: Zone = "UTC"
    domains: Annotated[dict[str, DomainModel], BeforeValidator(as_object)] = Field(
        default_factory=dict
    )
    templates: Annotated[dict[str, TemplateModel], BeforeValidator(as_object)] = Field(
        default_factory=dict
    )
    # Named lists of dates and times that the rules of actions leave out by `except`.
    calendars: Annotated[dict[str, Calendar], BeforeValidator(as_object)] = Field(
        default_factory=dict
    )
    design: Documents = Field(default_factory=dict)
    permissions: Documents = Field(default_factory=dict)
    notify: Flag = True
    notify_recipients: RecipientFilterModel | None = None
    public_status: Flag = False
    owner: Name | None = None
    settings: JsonDocument = Field(default_factory=dict)
    users: Users = ()
    groups: Groups | None = None
    users_complete: Flag = False

    @property
    def people(self) -> People:
        """The users and groups of the document."""
        return People(self.users, self.groups, self.users_complete)

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the problems of its names, its people and its `notify_recipients`."""
        return (
            people_problems(raw)
            + _empty_recipients(raw.get("notify_recipients"))
            + [
                line_error((part, str(key)), key, remedy)
                for part in ("groups", "domains", "templates", "calendars", *KINDS)
                if isinstance(raw.get(part), Mapping)
                for key in raw[part]
                if (remedy := _wrong_key(part, key)) is not None
            ]
        )


def _empty_recipients(recipients: object) -> list[InitErrorDetails]:
    if not isinstance(recipients, Mapping) or any(recipients.get(k) for k in ("users", "groups")):
        return []
    remedy = 'selects no user; write {"groups": ["all"]}, or set "notify" to false'
    return [line_error(("notify_recipients",), dict(recipients), remedy)]


def parse_small_app(document: object) -> SmallAppModel:
    """Return the small app of `document`; raises InvalidSmallApp with all problems.

    Users' instants without an offset are read in the app's zone.
    """
    app, problems = read_document(SmallAppModel, document, Reading(default_zone=_zone(document)))
    if app is None or problems:
        raise InvalidSmallApp(problems)
    return app


def stored_small_app(app: SmallAppModel) -> dict[str, Any]:
    """Return the JSON document to store: as written, with formats resolved and without people."""
    return app.model_dump(mode="json", exclude_unset=True, exclude=PEOPLE)


def _zone(document: object) -> str:
    try:
        return parse_zone(document.get("zone", "UTC")) if isinstance(document, dict) else "UTC"
    except ValueError:
        return "UTC"
