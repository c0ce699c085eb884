import pytest

from cron import InvalidRule, in_words
from tests.tables import table


@pytest.mark.parametrize(
    ("rule", "expected"),
    table(__file__, "a_rule_reads_as_english"),
)
def test_a_rule_reads_as_english(rule: str, expected: str) -> None:
    assert expected == in_words(rule)


def test_words_for_what_is_no_rule_are_refused() -> None:
    with pytest.raises(InvalidRule, match="above 59"):
        in_words("61 * * * *")
