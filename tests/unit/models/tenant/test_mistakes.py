"""What is written wrong in the document of a small app, and the whole text that is answered.

`mistakes.json` holds documents with their errors, or with the warnings of their domains. After a
change of an error, run `python -m tests.unit.models.tenant.test_mistakes` to record the new text.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from data.small_app.document import data_in
from data.small_app.sources import warnings_of_domains
from models.tenant.document import InvalidSmallApp, parse_small_app

FILE = Path(__file__).with_name("mistakes.json")
MISTAKES: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
SECRET = "s3cret"


def answered(document: object) -> list[str]:
    try:
        app = parse_small_app(document)
    except InvalidSmallApp as refused:
        return [f"{problem}" for problem in refused.problems]
    return warnings_of_domains(data_in(app).domains, ["warehouse"], ["crm"])


def values(document: object) -> list[object]:
    try:
        parse_small_app(document)
    except InvalidSmallApp as refused:
        return [problem.value for problem in refused.problems]
    return []


@pytest.mark.parametrize("mistake", [pytest.param(one, id=one["mistake"]) for one in MISTAKES])
def test_a_mistake_is_answered_and_shows_no_secret(mistake: dict[str, Any]) -> None:
    said = answered(mistake["document"])

    assert said == mistake["says"]
    assert SECRET not in str([*said, *values(mistake["document"])])


def record() -> None:
    told = [{**one, "says": answered(one["document"])} for one in MISTAKES]
    rows = [json.dumps(one, ensure_ascii=False) for one in told]
    FILE.write_text("[\n  " + ",\n  ".join(rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    record()
