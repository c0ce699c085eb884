from datetime import UTC, datetime
from functools import cache

import pytest

from tests.tables import table
from tests.unit.cron.comparison import compare
from tests.unit.cron.debian import RULES, Change, changes, wheel_names


def second_of(year: int, month: int = 1, day: int = 1) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())


@cache
def changes_of_all_zones() -> list[Change]:
    """Return the clock changes of 2025 to 2027, once for all zones with the same wall clock."""
    alike: dict[tuple[int, int], Change] = {}
    for name in wheel_names():
        for change in changes(name, second_of(2025), second_of(2028), 4 * 86400):
            jump = change.after - change.before
            alike.setdefault((change.second + change.before, jump), change)
    return list(alike.values())


@pytest.mark.parametrize("year", [2025, 2026, 2027])
def test_every_zone_behaves_like_debian_at_its_changes(year: int) -> None:
    start, end = second_of(year), second_of(year + 1)
    of_year = [change for change in changes_of_all_zones() if start <= change.second < end]

    # Only the odd changes ask '* * * * *': here it would take half of the time.
    tally = compare(of_year, RULES[1:])

    assert tally.differences == []
    assert len(of_year) > 25
    assert tally.compared > 1000 * len(of_year)


@pytest.mark.parametrize(
    ("zone", "year", "number"), table(__file__, "an_odd_change_behaves_as_in_debian")
)
def test_an_odd_change_behaves_as_in_debian(zone: str, year: int, number: int) -> None:
    found = list(changes(zone, second_of(year) - 86400, second_of(year + 1) - 86400))

    tally = compare(found, RULES)

    assert tally.differences == []
    assert len(found) == number
