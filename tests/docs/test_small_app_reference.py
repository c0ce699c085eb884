"""docs/reference/small-app.md: every key of a small app's document, and a document that is one."""

import re
from pathlib import Path

import pytest
import yaml

from models.problems import known_keys
from models.tenant.document import parse_small_app, small_app_model

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "small-app.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_each_key_has_a_row_and_each_row_is_a_key() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", TEXT, re.M)

    assert sorted(rows) == sorted(known_keys(small_app_model()))


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", TEXT, re.S))
def test_each_example_is_a_valid_document(block: str) -> None:
    document = yaml.safe_load(block)
    for user in document.get("users", []):
        user["activated_at"] = user["activated_at"].isoformat()

    assert parse_small_app(document).name == "shop"
