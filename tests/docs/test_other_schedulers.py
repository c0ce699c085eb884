"""docs/how-to/move-from-others.md: each rewritten rule is what the error advises, or means."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from models.action.document import ParseContext, parse_action
from models.errors import InvalidAction
from tests.factories import STEPS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "move-from-others.md"
ROWS = re.findall(r"^\| (\w.+?) \| `(.+?)` \| `(\{.+\})` \|$", PAGE.read_text("utf-8"), re.M)
NOW = datetime(2026, 11, 25, tzinfo=UTC)
# Rules of Python, which nobody pastes into JSON, and those that are the same here.
NOT_PASTED = {"timedelta(hours=6)", "@weekly", "30 5 * * 1,3"}


def read(when: dict[str, Any]) -> None:
    document = {"name": "a", "operations": {"maintenance": True}, "when": when}
    parse_action(document, ParseContext("UTC", NOW, STEPS, created_at=NOW))


def test_the_table_is_found() -> None:
    assert len(ROWS) == 10


@pytest.mark.parametrize(("scheduler", "theirs", "ours"), ROWS)
def test_each_rewritten_rule_is_accepted(scheduler: str, theirs: str, ours: str) -> None:
    read(json.loads(ours))


@pytest.mark.parametrize(("theirs", "ours"), [row[1:] for row in ROWS if row[1] not in NOT_PASTED])
def test_the_error_shows_the_rule_of_the_page(theirs: str, ours: str) -> None:
    with pytest.raises(InvalidAction) as refused:
        read({"cron_rule": theirs})

    rule = json.loads(ours)
    advised = rule.get("cron_rule", ours)
    assert advised in str(refused.value)
