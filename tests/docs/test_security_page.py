"""docs/explanation/security.md: each attack names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
ATTACKS = PAGE.split("## What is tried against it")[1].split("\n## ")[0]


def test_each_attack_is_made_by_a_test() -> None:
    known = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)
    }
    rows = re.findall(r"^\| .+ \| .+ \| (`test_.+`) \|$", ATTACKS, re.M)
    named = {name for row in rows for name in re.findall(r"`(test_\w+)`", row)}

    # Without the heading and the line below it.
    assert len(rows) == len(re.findall(r"^\|", ATTACKS, re.M)) - 2
    assert named - known == set()
