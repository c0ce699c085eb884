import pytest

from cron import InvalidRule, in_words
from tests.tables import table
from tests.unit.cron.debian import RULES


@pytest.mark.parametrize(
    ("rule", "expected"),
    table(__file__, "a_rule_reads_as_english"),
)
def test_a_rule_reads_as_english(rule: str, expected: str) -> None:
    assert expected == in_words(rule)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_words(rule: str) -> None:
    words = in_words(rule)

    assert words.startswith(("at ", "every "))
    assert "*" not in words


def test_words_for_what_is_no_rule_are_refused() -> None:
    with pytest.raises(InvalidRule, match="above 59"):
        in_words("61 * * * *")
