from datetime import UTC, datetime

import pytest

from cron import CronSchedule, clock_changes
from tests.tables import table

YEAR = (datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(("rule", "zone", "expected"), table(__file__, "a_year_of_changes"))
def test_a_year_of_changes(rule: str, zone: str, expected: list[list[object]]) -> None:
    found = clock_changes(CronSchedule(rule, zone), *YEAR)

    assert expected == [
        [one.named, one.is_gap, [f"{at:%Y-%m-%dT%H:%MZ}" for at in one.runs_at]] for one in found
    ]


def test_the_range_is_open_at_its_beginning() -> None:
    schedule = CronSchedule("30 2 * * *", "Europe/Paris")
    change = datetime(2027, 3, 28, 1, tzinfo=UTC)

    assert clock_changes(schedule, change, YEAR[1])[0].named == "2027-10-31 02:30"
    assert clock_changes(schedule, YEAR[0], change)[0].at == change
