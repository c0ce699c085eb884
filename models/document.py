"""The base of every document: frozen, reports all faults at once."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails

from models.errors import Problem
from models.hints import few_compared
from models.json_text import TOO_DEEP, unstorable
from models.parsing import Reading, places_known, reading_of
from models.problems import line_errors, null_values, problems_of, raise_all, unknown_keys


class Document(BaseModel):
    """An object of a document.

    Strict readings refuse unknown keys, tolerant ones ignore them. Subclasses fill in defaults
    from elsewhere (`completed`) and check keys against each other (`contradictions`).
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    # An example for errors, if the value is not an object.
    example: ClassVar[str] = ""

    @classmethod
    def completed(cls, raw: dict[str, Any], _reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with defaults from elsewhere."""
        return raw

    @classmethod
    def contradictions(
        cls,
        _raw: Mapping[str, Any],
        _reading: Reading,
        /,
    ) -> list[InitErrorDetails]:
        """Return the faults between keys of the raw object."""
        return []

    @model_validator(mode="wrap")
    @classmethod
    def _all_faults_at_once(
        cls, value: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        if isinstance(value, cls):
            return value
        reading = reading_of(info)
        raw = as_object(value, cls.example)
        faults = null_values(cls, raw)
        given = {key: value for key, value in raw.items() if value is not None} if faults else raw
        if not reading.tolerant:
            faults += unknown_keys(cls, raw) + cls.contradictions(raw, reading)
        try:
            model = handler(cls.completed(given, reading))
        except ValidationError as error:
            raise_all(cls.__name__, faults + line_errors(error))
            raise
        raise_all(cls.__name__, faults)
        return model


def as_written(model: BaseModel | None) -> Any:
    """Return a document as JSON with the keys that were written, or None."""
    return model and model.model_dump(mode="json", exclude_unset=True, by_alias=True)


# How a plan keeps the documents that are parts of it.
AS_WRITTEN = PlainSerializer(as_written, return_type=Any)


class NoParameters(Document):
    """No parameters."""


def as_object(value: object, example: str = "") -> dict[str, Any]:
    """Return a copy of the JSON object `value`; raises ValueError with `example` for others."""
    if not isinstance(value, Mapping):
        raise ValueError(f"write an object in {{ }}{example and f', such as {example}'}")
    return {str(key): item for key, item in value.items()}


Model = TypeVar("Model", bound=Document)


def read_document(
    model: type[Model], document: object, reading: Reading
) -> tuple[Model | None, list[Problem]]:
    """Return the document as `model`, None if it is unreadable, and all its problems.

    A value that no store can keep is a problem too, even inside free JSON.
    """
    unkept = unstorable(document)
    if any(problem.remedy == TOO_DEEP for problem in unkept):
        return None, unkept
    try:
        with few_compared(), places_known(model, reading.steps):
            return model.model_validate(document, context=reading), unkept
    except ValidationError as error:
        problems = problems_of(error)
    named = {problem.path for problem in problems}
    return None, problems + [problem for problem in unkept if problem.path not in named]
