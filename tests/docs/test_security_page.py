"""docs/dev/attacks.md: the table is that of the attacks, whose tests exist."""

from tests.docs.pages import text_of
from tests.hostile.attacks import ATTACKS, places, table

PAGE = text_of("dev/attacks")


def test_the_table_is_made_from_the_attacks() -> None:
    assert [line for line in PAGE.splitlines() if line.startswith("|")] == table()


def test_each_attack_is_made_by_a_test() -> None:
    assert all(one.tests for one in ATTACKS)
    assert {name for one in ATTACKS for name in one.tests} - {*places()} == set()
    assert len({one.number for one in ATTACKS}) == len(ATTACKS)
