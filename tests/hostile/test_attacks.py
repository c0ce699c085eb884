"""`make attack`: what it says of an attack by how its tests ended."""

import pytest

from tests.hostile.attacks import Attack, carried_out


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        pytest.param({"test_a": {"passed"}, "test_b": {"passed", "skipped"}}, "held", id="held"),
        pytest.param(
            {"test_a": {"passed"}, "test_b": {"failed"}}, "BROKEN: failed, passed", id="broken"
        ),
        pytest.param({"test_a": {"passed"}}, "BROKEN: not run, passed", id="one_is_not_run"),
        pytest.param({"test_a": {"skipped"}, "test_b": {"skipped"}}, "BROKEN: skipped", id="none"),
    ],
)
def test_an_attack_is_held_by_all_of_its_tests(seen: dict[str, set[str]], told: str) -> None:
    attack = Attack("X1", "a file is read", "it is not", ("test_a", "test_b"))

    assert list(carried_out([attack], seen)) == [(told == "held", f"X1  a file is read: {told}")]
