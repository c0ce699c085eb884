"""Occurrences of a rule on days with a clock change."""

from datetime import UTC, datetime

import pytest

from cron import CronSchedule, clock_changes

YEAR = (datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("rule", "zone", "expected"),
    [
        pytest.param(
            "30 2 * * *",
            "Europe/Paris",
            [
                ("2027-03-28 02:30", True, ["2027-03-28T01:00Z"]),
                ("2027-10-31 02:30", False, ["2027-10-31T00:30Z"]),
            ],
            id="a_fixed_time_runs_at_the_gaps_end_and_the_first_time",
        ),
        pytest.param(
            "*/30 2 * * *",
            "Europe/Paris",
            [
                ("2027-03-28 02:00", True, []),
                (
                    "2027-10-31 02:00",
                    False,
                    [f"2027-10-31T{clock}Z" for clock in ("00:00", "00:30", "01:00", "01:30")],
                ),
            ],
            id="a_wildcard_follows_the_clock",
        ),
        pytest.param("0 * * * *", "Europe/Paris", [], id="every_hour_goes_on"),
        pytest.param("0 7 * * *", "Europe/Paris", [], id="another_hour_is_not_concerned"),
        pytest.param("0 3 * * *", "Europe/Paris", [], id="the_gaps_end_itself_exists"),
        pytest.param("30 2 * * *", "UTC", [], id="utc_is_never_set"),
        pytest.param(
            "15 2 * * sun",
            "Australia/Lord_Howe",
            [("2027-10-03 02:15", True, ["2027-10-02T15:30Z"])],
            id="half_an_hour",
        ),
        pytest.param("15 2 * * mon", "Europe/Paris", [], id="not_on_a_sunday"),
    ],
)
def test_a_year_of_changes(
    rule: str, zone: str, expected: list[tuple[str, bool, list[str]]]
) -> None:
    found = clock_changes(CronSchedule(rule, zone), *YEAR)

    assert expected == [
        (one.named, one.is_gap, [f"{at:%Y-%m-%dT%H:%MZ}" for at in one.runs_at]) for one in found
    ]


def test_the_range_is_open_at_its_beginning() -> None:
    schedule = CronSchedule("30 2 * * *", "Europe/Paris")
    change = datetime(2027, 3, 28, 1, tzinfo=UTC)

    assert clock_changes(schedule, change, YEAR[1])[0].named == "2027-10-31 02:30"
    assert clock_changes(schedule, YEAR[0], change)[0].at == change
