"""The parameters of the built-in steps."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, PlainSerializer, PlainValidator, TypeAdapter
from pydantic_core import InitErrorDetails

from models.document import Document
from models.parsing import Reading
from models.problems import line_error
from models.values import (
    CeleryQueue,
    Flag,
    Name,
    Names,
    Url,
    one_of,
    parse_flag,
    parse_list,
)

PUBLISHED = ("data", "design", "permissions")
_NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(Names)


def _domains(value: object) -> str | tuple[str, ...]:
    if value == "all":
        return "all"
    if isinstance(value, str):
        raise ValueError(f'write "all" or a list of names: [{json.dumps(value[:60])}]')
    if value == []:
        raise ValueError('names no domain; write "all" or a list of names')
    return _NAMES.validate_python(value)


def _selection(value: object) -> bool | tuple[str, ...]:
    """Return true, false or the names; a string is a boolean, never a name."""
    if isinstance(value, list | tuple):
        return _NAMES.validate_python(value) or False
    try:
        return parse_flag(value)
    except ValueError:
        raise ValueError('write true, false or a list of names: ["a", "b"]') from None


def _is_off(value: object) -> bool:
    return value in (False, "", []) or str(value).lower() == "false"


def _list_or_value(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _object(value: object) -> object:
    if isinstance(value, dict):
        return value
    raise ValueError("write an object in { }")


AS_LIST = PlainSerializer(_list_or_value, return_type=Any)
Domains = Annotated[str | tuple[str, ...], PlainValidator(_domains), AS_LIST]
Selection = Annotated[bool | tuple[str, ...], PlainValidator(_selection), AS_LIST]
JsonObject = Annotated[dict[str, JsonValue], BeforeValidator(_object)]


class NoParameters(Document):
    """No parameters."""


class RefreshParameters(Document):
    """The domains to refresh, and from where.

    `include_new_domains` also refreshes domains created after the action was saved: by default with
    "all", and not with names. `force` rewrites a domain whose source has not changed.
    """

    domains: Domains = "all"
    force: Flag = False
    include_new_domains: Flag | None = None
    from_: Annotated[
        Literal["source", "downloaded"], BeforeValidator(one_of("source", "downloaded"))
    ] = Field("source", alias="from")

    @property
    def takes_new_domains(self) -> bool:
        """Whether domains created after the action was saved are refreshed too."""
        if self.include_new_domains is None:
            return self.domains == "all"
        return self.include_new_domains


class PublishParameters(Document):
    """What moves from staging to production: all of a kind (true), nothing, or named entries.

    `notify` sends the "new data available" mail: by default on manual runs, not on scheduled ones.
    """

    data: Selection = False
    design: Selection = False
    permissions: Selection = False
    notify: Flag | None = None

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the fault of publishing nothing."""
        if all(_is_off(raw.get(kind, False)) for kind in PUBLISHED):
            remedy = 'publishes nothing; write true, or set "data", "design" or "permissions"'
            return [line_error((), dict(raw), remedy)]
        return []


class SendEmailParameters(Document):
    """The stored template to send to each recipient."""

    template: Name


# A field called `kwargs` collides with the **kwargs that mypy's plugin gives to __init__.
class CeleryTaskParameters(Document):  # type: ignore[no-redef]
    """A task of the user's Celery application.

    `in_doubt` is what to do if it is uncertain whether the broker took the message.
    """

    task: Name
    args: Annotated[tuple[JsonValue, ...], BeforeValidator(parse_list)] = ()
    kwargs: JsonObject = Field(default_factory=dict)
    queue: CeleryQueue | None = None
    in_doubt: Annotated[
        Literal["leave", "send_again"], BeforeValidator(one_of("leave", "send_again"))
    ] = "leave"


class JobParameters(Document):
    """Work for a worker in any language, over HTTP."""

    url: Url
    meta: JsonObject = Field(default_factory=dict)
