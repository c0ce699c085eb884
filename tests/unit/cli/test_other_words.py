"""Commands by the words of other tools."""

import pytest

from cli.other_words import IN_GROUPS, OF_GROUPS, advice_for
from cli.tree import COMMANDS


@pytest.mark.parametrize("name", OF_GROUPS)
def test_each_word_names_a_command_that_is_there(name: str) -> None:
    group, *_ = OF_GROUPS[name].split()

    assert name not in COMMANDS
    assert group in COMMANDS
    assert advice_for(name) == f"No such command '{name}'; write 'minutebook {OF_GROUPS[name]}'."


def test_another_word_has_no_advice() -> None:
    assert advice_for("fly") is None
    assert "add" not in IN_GROUPS
