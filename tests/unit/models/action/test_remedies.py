"""The remedy for a wrong document works when it is followed to the letter."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from minutebook.steps import StepSpec
from models.action.document import ParseContext, parse_action
from models.errors import InvalidAction
from tests.factories import STEPS
from tests.unit.models.action.minimal import NOW, action


class Limits(BaseModel):
    count: int = Field(1, ge=1, le=5)
    share: float = Field(0.5, gt=0, lt=1, allow_inf_nan=False)
    word: str = Field("ab", min_length=2, max_length=3, pattern="[a-z]")
    many: list[int] = Field([1], min_length=1, max_length=2)


def parse(document: object, **changes: Any) -> None:
    parse_action(document, ParseContext("UTC", NOW, **{"steps": STEPS, **changes}))


def remedy(document: object, path: str, **changes: Any) -> str:
    with pytest.raises(InvalidAction) as refused:
        parse(document, **changes)
    (problem,) = refused.value.problems
    assert problem.path == path
    return problem.remedy


def advised(text: str) -> Any:
    return json.loads(text[min(at for at in (text.find("["), text.rfind('{"')) if at >= 0) :])


@pytest.mark.parametrize("value", ["0 7 * * 1", "weekly", True, "PT5M"])
def test_a_bare_rule_is_answered_with_an_example(value: object) -> None:
    written = advised(remedy(action(when=value), "when"))
    listed = advised(remedy(action(when=[value]), "when[0]"))

    parse(action(when=written))
    parse(action(when=[listed]))


def test_a_tolerance_beside_catch_up_all_is_refused() -> None:
    when = {"every": "PT1H", "tolerance": "PT10M"}

    found = remedy(action(when=when, policy={"catch_up": "all"}), "when.tolerance")

    assert found == 'drops occurrences that "catch_up": "all" runs; remove one of the two'
    parse(action(when=when, policy={"catch_up": "latest"}))
    parse(action(when={"every": "PT1H"}, policy={"catch_up": "all"}))


def test_a_bare_hook_is_answered_with_an_example() -> None:
    alone = advised(remedy(action(hooks={"on_failure": "env:HOOK"}), "hooks.on_failure"))
    listed = advised(remedy(action(hooks={"on_failure": ["env:HOOK"]}), "hooks.on_failure[0]"))

    assert alone == [listed]
    parse(action(hooks={"on_failure": alone}))


@pytest.mark.parametrize(
    "document",
    [
        {"name": "shop", "zone": "UTC"},
        {"name": "shop", "domains": {"orders": {"source": {"file": "orders.csv"}}}},
    ],
)
def test_the_document_of_a_small_app_names_its_command(document: object) -> None:
    found = remedy(document, "document")

    assert found == "is the document of a small app; save it with `minutebook app add`"


def test_an_action_with_a_key_of_a_small_app_remains_an_action() -> None:
    assert "key" in remedy(action(zone="UTC"), "zone")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("count", 0, "the value should be greater than or equal to 1"),
        ("share", 1, "the value should be less than 1"),
        ("word", "a", "String should have at least 2 characters"),
        ("many", [1, 2, 3], "List should have at most 2 items after validation, not 3"),
        ("many", ["x"], "write a whole number"),
    ],
)
def test_the_limits_of_a_user_step_are_named(key: str, value: object, expected: str) -> None:
    document = action(operations={"limits": {key: value}})

    with pytest.raises(InvalidAction) as refused:
        parse(document, steps={"limits": StepSpec("limits", Limits)})

    assert [problem.remedy for problem in refused.value.problems] == [expected]
