from datetime import UTC, datetime
from typing import Any

import pytest

from models.action.document import ParseContext, parse_action, plan_of, stored_document
from models.errors import InvalidAction
from tests.factories import STEPS, make_document
from tests.tables import table

CONTEXT = ParseContext("UTC", datetime(2026, 11, 21, tzinfo=UTC), STEPS, commands=("*",))


def parsed(parameters: Any) -> Any:
    return parse_action(make_document(operations={"command": parameters}), CONTEXT)


@pytest.mark.parametrize(
    ("parameters", "told"), table(__file__, "what_is_wrong_says_what_to_write")
)
def test_what_is_wrong_says_what_to_write(parameters: Any, told: str) -> None:
    with pytest.raises(InvalidAction) as refused:
        parsed(parameters)

    assert told in str(refused.value)


def test_a_command_is_quick_and_stored_as_written() -> None:
    written = {"run": ["./backup.sh", "--full"], "env": {"STAGE": "x"}, "cwd": "/srv"}
    action = parsed(written)

    assert plan_of(action).queue == "quick"
    assert stored_document(action)["operations"] == {"command": written}
