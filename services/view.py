"""The base classes of views, the typed results of commands.

A view holds values: `--json` prints them unchanged, and `cli/texts` formats them as text. Instants
are aware UTC, written as `2026-11-23T06:00:00Z`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    RootModel,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticSerializationError

from models.problems import known_keys, line_errors, raise_all
from models.values import format_instant
from runtime.visible import visible_json

# The most items on a page of a list.
LARGEST_PAGE = 1_000
# Of a page unless a request says.
PAGE = 50
Limit = Annotated[int, Field(ge=1, le=LARGEST_PAGE, description="The most of a page.")]
Cursor = Annotated[str | None, Field(description="`next` of the page before.")]
# Of a page of documents, each of which may be long.
MOST_DOCUMENTS = 100
INSTANT_SCHEMA = {"type": "string", "format": "date-time", "examples": ["2026-11-23T06:00:00Z"]}

Instant = Annotated[
    datetime,
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema(INSTANT_SCHEMA, mode="serialization"),
]


def _whole_first(number: float) -> float:
    return int(number) if number.is_integer() else number


# A whole number of seconds is written as one: 45, not 45.0.
Seconds = Annotated[
    float,
    PlainSerializer(_whole_first, return_type=int | float),
    WithJsonSchema({"type": "number"}, mode="serialization"),
]


class View(BaseModel):
    """A thing as it is shown, or the result of a request.

    A wire format: its keys stay as they are when the code behind them changes, and so it may mirror
    a class of `models/`.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True, defer_build=True)

    @classmethod
    def of(cls, found: object, **own: Any) -> Self:
        """Return the view of a stored row, or of an object with attributes of the same names.

        `own` are the fields that it lacks, or has in another form.
        """
        read = found.__getitem__ if isinstance(found, Mapping) else partial(getattr, found)
        return cls(**{key: read(key) for key in cls.model_fields if key not in own}, **own)

    @property
    def errors(self) -> tuple[str, ...]:
        """What was refused, and what has not ended in time, each with the reason."""
        return self._said_in("refused")

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the user: why the broker has not taken a message yet."""
        return self._said_in("unsent")

    def _said_in(self, name: str) -> tuple[str, ...]:
        """Return what a field says; nothing if the view has none, or it is empty."""
        said: str | None = self.__dict__.get(name)
        return (said,) if said else ()

    @property
    def exit_code(self) -> int:
        """The exit code of a command that shows this: 0 done, 1 tried and failed, 2 refused."""
        return 0


class RequestBody(BaseModel):
    """What a request sends; a key that is not known is refused. A wire format, as a view is."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @model_validator(mode="wrap")
    @classmethod
    def _names_the_key_that_is_meant(
        cls, value: Any, handler: ModelWrapValidatorHandler[Self]
    ) -> Self:
        try:
            return handler(value)
        except ValidationError as error:
            raise_all(cls.__name__, line_errors(error, known=known_keys(cls)))
            raise


Item = TypeVar("Item", bound=View)


class Listing(RootModel[tuple[Item, ...]], Generic[Item]):
    """Many of one kind: a JSON list."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    @property
    def errors(self) -> tuple[str, ...]:
        """What was refused, and what has not ended in time, each with the reason."""
        return tuple(why for one in self.root for why in one.errors)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the user, each once."""
        return tuple(dict.fromkeys(note for one in self.root for note in one.notes))

    @property
    def exit_code(self) -> int:
        """The exit code of a command that shows this."""
        return 0


class Page(View, Generic[Item]):
    """A part of a list."""

    items: tuple[Item, ...] = Field(description="The things of this page.")
    next: str | None = Field(description="`cursor` of the next page; null for the last page.")


Row = TypeVar("Row")


def first_of(
    rows: Sequence[Row], limit: int, place: Callable[[Row], Any]
) -> tuple[Sequence[Row], str | None]:
    """Return up to `limit` rows, and the place of the last of them if others follow."""
    shown = rows[:limit]
    return shown, str(place(shown[-1])) if len(rows) > limit else None


Shown = View | Listing[Any]


def as_json(view: Shown) -> Any:
    return view.model_dump(mode="json", by_alias=True)


def json_text(view: Shown) -> str:
    """Return a view as indented JSON text with control characters escaped."""
    try:
        text = view.model_dump_json(by_alias=True, indent=2)
    except PydanticSerializationError:
        # Half a character, as in the name of a file: only Python's own encoder writes it.
        text = json.dumps(as_json(view), indent=2, ensure_ascii=False)
    return visible_json(text)


def json_line(view: Shown) -> str:
    """Return a view as `json_text` does, on one line."""
    return visible_json(json.dumps(as_json(view), ensure_ascii=False))
