"""What real users write wrong, and the whole text that each of them reads; its advice works.

`mistakes.json` holds a document or a text, or the changes to a valid action, with what is answered:
errors, or warnings where the document is valid. After a change of an error, read the new text
aloud, then run `python -m tests.unit.models.action.test_mistakes` to record it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from minutebook.steps import StepSpec
from models.action.document import ScheduledActionModel
from models.action.hooks import HookModel, HooksModel
from models.action.policy import PolicyModel, RetryModel
from models.action.steps import OperationModel
from models.action.when import WhenModel
from models.celery_task import CeleryRules
from models.errors import InvalidAction
from models.json_text import InvalidJson, read_json
from models.parsing import PLAIN, keys_of
from models.problems import known_keys
from services.warnings import KnownNames, warnings_of
from tests.tables import table
from tests.unit.models.action.minimal import action, parse

FILE = Path(__file__).with_name("mistakes.json")
MISTAKES: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
PYDANTIC = ("pydantic", "Input should", "Value error")
KNOWN = KnownNames(
    users=["ann@example.com"],
    groups=["manager"],
    others={
        "domains": ["sales", "stock", "orders"],
        "templates": ["weekly", "inactive", "inactivated", "news"],
        "design": ["start"],
        "permissions": ["sales"],
    },
    kept_recipients=1,
    actions={"refresh"},
    zone="Europe/Paris",
)


def answered(mistake: dict[str, Any]) -> list[str]:
    given = mistake.get("document")
    if "changes" in mistake:
        given = action(**mistake["changes"], **dict.fromkeys(mistake.get("without", ()), ...))
    try:
        document = read_json(given) if isinstance(given, str) else given
        rules = CeleryRules(("tasks.*",))
        return warnings_of(parse(document, celery=rules, commands=("*",)), KNOWN)
    except InvalidAction as refused:
        return [str(problem) for problem in refused.problems]
    except InvalidJson as refused:
        return [str(refused)]


@pytest.mark.parametrize("mistake", [pytest.param(one, id=one["mistake"]) for one in MISTAKES])
def test_a_mistake_is_answered(mistake: dict[str, Any]) -> None:
    said = answered(mistake)

    assert said == mistake["says"]
    assert not any(theirs in " ".join(said) for theirs in PYDANTIC)


def test_each_key_that_is_written_too_high_has_a_place() -> None:
    top = known_keys(ScheduledActionModel)
    below = [OperationModel.held(PLAIN.steps), WhenModel.held(PLAIN.steps)]
    below += [keys_of(one) for one in (PolicyModel, RetryModel, HooksModel, HookModel)]
    keys = {key for held in below for key in held if key not in top}

    for key in keys:
        (said,) = answered({"changes": {key: 1}})
        assert "is not a key here; write it in " in said


class Limits(BaseModel):
    count: int = Field(1, ge=1, le=5)
    share: float = Field(0.5, gt=0, lt=1, allow_inf_nan=False)
    word: str = Field("ab", min_length=2, max_length=3, pattern="[a-z]")
    many: list[int] = Field([1], min_length=1, max_length=2)


def refused(document: object, **known: Any) -> tuple[str, str]:
    """Return the path and the remedy of the only problem of a document."""
    with pytest.raises(InvalidAction) as caught:
        parse(document, **known)
    (problem,) = caught.value.problems
    return problem.path, problem.remedy


@pytest.mark.parametrize(
    ("key", "value", "expected"), table(__file__, "the_limits_of_a_user_step_are_named")
)
def test_the_limits_of_a_user_step_are_named(key: str, value: object, expected: str) -> None:
    document = action(operations={"limits": {key: value}})

    assert refused(document, steps={"limits": StepSpec("limits", Limits)})[1] == expected


@pytest.mark.parametrize(
    ("key", "value"), [("when", "0 7 * * 1"), ("when", True), ("on_failure", "env:HOOK")]
)
def test_a_bare_value_is_answered_with_an_example_that_is_taken(key: str, value: object) -> None:
    def with_it(given: object) -> dict[str, Any]:
        return action(**({"when": given} if key == "when" else {"hooks": {key: given}}))

    def advised(given: object) -> Any:
        text = refused(with_it(given))[1]
        return json.loads(text[min(at for at in (text.find("["), text.rfind('{"')) if at >= 0) :])

    parse(with_it(advised(value)))
    parse(with_it([advised([value])]))


def record() -> None:
    rows = [json.dumps({**one, "says": answered(one)}, ensure_ascii=False) for one in MISTAKES]
    FILE.write_text("[\n  " + ",\n  ".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    record()
