"""docs/how-to/move-from-others.md: each rewritten rule is accepted."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from models.action.document import ParseContext, parse_action
from tests.factories import STEPS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "move-from-others.md"
ROWS = re.findall(r"^\| (\w.+?) \| `(.+?)` \| `(\{.+\})` \|$", PAGE.read_text("utf-8"), re.M)
NOW = datetime(2026, 11, 25, tzinfo=UTC)


def read(when: dict[str, Any]) -> None:
    document = {"name": "a", "operations": {"maintenance": True}, "when": when}
    parse_action(document, ParseContext("UTC", NOW, STEPS, created_at=NOW))


def test_the_table_is_found() -> None:
    assert len(ROWS) == 10


@pytest.mark.parametrize("ours", [row[2] for row in ROWS])
def test_each_rewritten_rule_is_accepted(ours: str) -> None:
    read(json.loads(ours))
