"""The document of the step `command`: what is refused, and what it says instead."""

from datetime import UTC, datetime
from typing import Any

import pytest

from models.action.document import ParseContext, parse_action, plan_of, stored_document
from models.errors import InvalidAction
from tests.factories import STEPS, make_document

CONTEXT = ParseContext("UTC", datetime(2026, 11, 21, tzinfo=UTC), STEPS, commands=("*",))


def parsed(parameters: Any) -> Any:
    return parse_action(make_document(operations={"command": parameters}), CONTEXT)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("./backup.sh", 'write true, false or an object with parameters: {"run": ["./backup.sh"]}'),
        ({}, 'write "run": ["program", "argument"], or "shell": "a line of shell"'),
        ({"run": ["a"], "shell": "a"}, 'cannot be combined with "run"; write one of them'),
        ("./backup.sh -f", 'an object with parameters: {"run": ["./backup.sh"]}'),
        ({"run": "./backup.sh -f"}, 'write a list: ["./backup.sh", "-f"], or use "shell"'),
        ({"run": ["./backup.sh -f"]}, 'is one text; write ["./backup.sh", "-f"], or use "shell"'),
        ({"run": []}, "is empty; write the program and its arguments"),
        ({"shell": "  "}, "is empty; write the line to run"),
        ({"run": ["/opt/a(LD_PRELOAD)"]}, "ends with a bracket, as variables do in SCHED_COMMANDS"),
        ({"run": ["a"], "cwd": "srv"}, "is not a whole path"),
        ({"run": ["a"], "env": {"A B": "x"}}, "'A B' is not the name of a variable"),
        ({"run": ["a"], "env": {"MINUTEBOOK_X": "x"}}, "is a variable of Minutebook's own"),
        ({"run": ["a"], "env": {"A": "env:A-B"}}, "env: needs the name of a variable"),
    ],
)  # fmt: skip
def test_what_is_wrong_says_what_to_write(parameters: Any, told: str) -> None:
    with pytest.raises(InvalidAction) as refused:
        parsed(parameters)

    assert told in str(refused.value)


def test_a_command_is_quick_and_stored_as_written() -> None:
    written = {"run": ["./backup.sh", "--full"], "env": {"STAGE": "x"}, "cwd": "/srv"}
    action = parsed(written)

    assert plan_of(action).queue == "quick"
    assert stored_document(action)["operations"] == {"command": written}
