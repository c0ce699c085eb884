"""docs/dev/attacks.md: the tests of its table exist."""

from tests.hostile.attacks import attacks, places


def test_each_attack_is_made_by_a_test() -> None:
    found = attacks()

    assert len(found) > 40
    assert all(one.tests for one in found)
    assert {name for one in found for name in one.tests} - {*places()} == set()
    assert len({one.number for one in found}) == len(found)
