"""Two hostile editors on one installation: every attack of the list is held."""

import pytest

from tests.hostile.attacks import ATTACKS, Attack
from tests.hostile.stage import Stage
from tests.hostile.two_tenants import carry_out, main


def test_every_attack_is_held() -> None:
    assert [line for is_held, line in carry_out(ATTACKS) if not is_held] == []


def test_an_attack_that_is_not_held_is_told_and_ends_with_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def reads_the_salary(stage: Stage) -> str:
        assert "7777" not in (stage.data / "bakery" / "salaries.csv").read_text(), "it is read"
        return "it is not"

    code = main([Attack("X1", "a file is read", "it is not", (), reads_the_salary)])

    printed = capsys.readouterr().out.splitlines()
    assert code == 1
    assert printed[0].startswith("X1  a file is read: BROKEN: AssertionError: it is read")
    assert printed[-1] == "1 attacks, 1 not held"
