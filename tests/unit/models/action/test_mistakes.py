"""What real users write wrong, and the whole text that each of them reads.

`mistakes.json` holds a document or a text, or the changes to a valid action, with what is answered:
errors, or warnings where the document is valid. After a change of an error, read the new text
aloud, then run `python -m tests.unit.models.action.test_mistakes` to record it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from models.action.document import ParseContext, parse_action
from models.celery_task import CeleryRules
from models.errors import InvalidAction
from models.json_text import InvalidJson, read_json
from services.warnings import KnownNames, warnings_of
from tests.factories import STEPS
from tests.unit.models.action.minimal import NOW, action

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
    zone="Europe/Paris",
)


def answered(mistake: dict[str, Any]) -> list[str]:
    given = mistake.get("document")
    if "changes" in mistake:
        given = action(**mistake["changes"], **dict.fromkeys(mistake.get("without", ()), ...))
    context = ParseContext("Europe/Paris", NOW, STEPS, celery=CeleryRules(("tasks.*",)))
    try:
        document = read_json(given) if isinstance(given, str) else given
        return warnings_of(parse_action(document, context), KNOWN)
    except InvalidAction as refused:
        return [str(problem) for problem in refused.problems]
    except InvalidJson as refused:
        return [str(refused)]


@pytest.mark.parametrize("mistake", [pytest.param(one, id=one["mistake"]) for one in MISTAKES])
def test_a_mistake_is_answered(mistake: dict[str, Any]) -> None:
    said = answered(mistake)

    assert said == mistake["says"]
    assert not any(theirs in " ".join(said) for theirs in PYDANTIC)


def record() -> None:
    rows = [json.dumps({**one, "says": answered(one)}, ensure_ascii=False) for one in MISTAKES]
    FILE.write_text("[\n  " + ",\n  ".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    record()
