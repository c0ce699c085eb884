"""docs/dev/attacks.md: the table is that of the attacks, whose tests exist."""

import re
from pathlib import Path

from tests.docs.pages import text_of
from tests.hostile.attacks import ATTACKS
from tests.hostile.two_tenants import table

ROOT = Path(__file__).parents[2]
PAGE = text_of("dev/attacks")


def test_the_table_is_made_from_the_attacks() -> None:
    assert [line for line in PAGE.splitlines() if line.startswith("|")] == table()


def test_each_attack_is_made_by_a_test() -> None:
    known = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)
    }

    assert all(one.tests for one in ATTACKS)
    assert {name for one in ATTACKS for name in one.tests} - known == set()
    assert len({one.number for one in ATTACKS}) == len(ATTACKS)
