"""Every error of pydantic is answered in our own words."""

import re
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import (
    AfterValidator,
    AnyUrl,
    AwareDatetime,
    BaseModel,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from models.problems import problems_of, remedy_of, unknown_keys
from services.jobs.documents import NewJob

PYDANTICS = re.compile(r"\b(?:should|input|valid|parse|matching)\b", re.IGNORECASE)
BOUNDED = Annotated[int, Field(ge=1, lt=9, multiple_of=2)]
WORD = Annotated[str, Field(min_length=2, max_length=3, pattern="^[a-z]+$")]
FEW = Annotated[list[int], Field(min_length=1, max_length=2)]


def remedies(annotation: Any, values: Iterable[object]) -> list[str]:
    found = []
    for value in values:
        with pytest.raises(ValidationError) as caught:
            TypeAdapter(annotation).validate_python(value)
        found += [remedy_of(one) for one in caught.value.errors()]
    return found


@pytest.mark.parametrize(
    ("annotation", "values"),
    [
        (BOUNDED, [0, 3, 10, "x", 1.5, "9" * 5_000, None]),
        (Annotated[float, Field(gt=0.5, le=1, allow_inf_nan=False)], [0.5, 2, "x", [], "nan"]),
        (Annotated[Decimal, Field(max_digits=3, decimal_places=1)], ["x", "1234", "0.12", []]),
        (WORD, ["a", "aaaa", "aA", 1, b"\xff"]),
        (bytes, [1]),
        (FEW, [[], [1, 2, 3], "x"]),
        (set[Any], [1, [[]]]),
        (frozenset[int], [1]),
        (tuple[int, int], [1, [1], [1, 2, 3]]),
        (dict[str, int], [1, {1: 1}]),
        (Literal["a", "b"], ["c"]),
        (bool, ["x", 5]),
        (datetime, ["x", [], "2027-13-01"]),
        (AwareDatetime, ["2027-01-01T00:00:00"]),
        (date, ["x", [], "2027-01-01T01:00:00"]),
        (time, ["x", []]),
        (timedelta, ["x", []]),
        (UUID, ["x", 1]),
        (AnyUrl, ["x", 1]),
        (BaseModel, [1]),
        (None, [1]),
    ],
    ids=str,
)
def test_an_error_is_answered_in_our_own_words(annotation: Any, values: list[object]) -> None:
    for said in remedies(annotation, values):
        assert not PYDANTICS.search(said)
        assert "{" not in said.replace("{ }", "").replace('{"shop"', "")


def test_an_unknown_key_of_a_request_names_the_key_that_is_meant() -> None:
    with pytest.raises(ValidationError) as caught:
        NewJob.model_validate({"interval": 30, "meta": 1, "x": 1})

    said = {one.path: one.remedy for one in problems_of(caught.value)}
    assert said["interval"] == 'is not a known key; did you mean "interval_s"?'
    assert said["x"].startswith('is not a known key; known here: "url", "interval_s"')
    assert said["url"].startswith("is required; add")
    assert said["meta"].startswith("write an object in { }")


class OfUser(BaseModel, extra="allow"):
    """The parameters of a step that takes all keys."""

    known: int


def test_a_model_of_a_user_may_take_all_keys() -> None:
    assert unknown_keys(OfUser, {"known": 1, "other": 2}) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("write it twice", "write it twice"),
        ("Input should be seven", "the value should be seven"),
    ],
)
def test_a_validator_of_a_user_has_its_own_words(text: str, said: str) -> None:
    def refuse(_value: object) -> None:
        raise PydanticCustomError("own", text)

    assert remedies(Annotated[int, AfterValidator(refuse)], [1]) == [said]
