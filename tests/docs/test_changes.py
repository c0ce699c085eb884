"""CHANGELOG.md: its newest release is this one, and each line leads to a page."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
LINES = re.findall(r"^- (.+)$", CHANGES, re.M)


def test_the_newest_release_is_that_of_the_package() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    releases = re.findall(r"^## (\d+\.\d+\.\d+)\b", CHANGES, re.M)
    assert releases[0] == package["project"]["version"]


@pytest.mark.parametrize("line", LINES, ids=range(1, len(LINES) + 1))
def test_each_line_leads_to_a_page(line: str) -> None:
    assert re.search(r"\]\(\S+\.md(#\S+)?\)$", line), line
