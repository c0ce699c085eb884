"""docs/dev/attacks.md: the tests of its table exist."""

from tests.hostile.attacks import attacks, places


def test_each_attack_is_made_by_a_test() -> None:
    found = attacks()

    assert len(found) > 40
    assert all(tests for _, tests in found)
    assert {name for _, tests in found for name in tests} - {*places()} == set()
    assert len({number for number, _ in found}) == len(found)
