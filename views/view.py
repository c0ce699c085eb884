"""The base of every view: a typed result that the command line prints and HTTP returns.

A view holds values, not sentences for one door: `--json` prints it as it is, `cli/texts` says it in
words. Instants are aware UTC, and written as `2026-11-23T06:00:00Z`.
"""

import json
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, PlainSerializer, RootModel, WithJsonSchema

from models.values import format_instant
from runtime.visible import visible_json

INSTANT_SCHEMA = {"type": "string", "format": "date-time", "examples": ["2026-11-23T06:00:00Z"]}

Instant = Annotated[
    datetime,
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema(INSTANT_SCHEMA, mode="serialization"),
]


class View(BaseModel):
    """What is shown of a thing, or what became of a request."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    @property
    def refusals(self) -> tuple[str, ...]:
        """What was asked for and refused, each with the reason."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know besides: it went on, but not as usual."""
        return ()

    @property
    def exit_code(self) -> int:
        """How a command that shows this ends: 0 done, 1 tried and failed, 2 refused."""
        return 0


Item = TypeVar("Item", bound=View)


class Listing(RootModel[tuple[Item, ...]], Generic[Item]):
    """Many of one kind: a JSON list."""

    model_config = ConfigDict(frozen=True)

    @property
    def refusals(self) -> tuple[str, ...]:
        """What was asked for and refused, each with the reason."""
        return tuple(why for one in self.root if (why := getattr(one, "refused", None)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know besides, each once."""
        return tuple(dict.fromkeys(note for one in self.root for note in one.notes))

    @property
    def exit_code(self) -> int:
        """How a command that shows this ends."""
        return 0


Shown = View | Listing[Any]


def as_json(view: Shown) -> Any:
    """Return a view as JSON values."""
    return view.model_dump(mode="json", by_alias=True)


def json_text(view: Shown) -> str:
    """Return a view as JSON text, in which no character can hide or move anything."""
    return visible_json(json.dumps(as_json(view), indent=2, ensure_ascii=False))
