import pytest

from cron import in_words
from tests.tables import table


@pytest.mark.parametrize(
    ("rule", "expected"),
    table(__file__, "a_rule_reads_as_english"),
)
def test_a_rule_reads_as_english(rule: str, expected: str) -> None:
    assert expected == in_words(rule)
