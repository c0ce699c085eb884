"""Every schedule matches Debian's cron around every clock change of every zone."""

from datetime import UTC, datetime
from functools import cache

import pytest

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
    ("zone", "year", "number"),
    [
        pytest.param("Pacific/Apia", 2011, 3, id="a_day_is_left_out_apia"),
        pytest.param("Pacific/Kwajalein", 1993, 1, id="a_day_is_left_out_kwajalein"),
        pytest.param("America/Caracas", 2016, 1, id="half_an_hour_forward_caracas"),
        pytest.param("America/Caracas", 2007, 1, id="half_an_hour_back_caracas"),
        pytest.param("Asia/Pyongyang", 2015, 1, id="half_an_hour_back_pyongyang"),
        pytest.param("Asia/Pyongyang", 2018, 1, id="half_an_hour_forward_pyongyang"),
        pytest.param("Australia/Lord_Howe", 2023, 2, id="half_an_hour_of_summer_time_lord_howe"),
        pytest.param("Australia/Lord_Howe", 1985, 2, id="from_an_hour_to_half_an_hour_lord_howe"),
        pytest.param("Pacific/Chatham", 2023, 2, id="a_quarter_past_an_hour_chatham"),
        pytest.param("America/St_Johns", 1988, 2, id="two_hours_of_summer_time_st_johns"),
        pytest.param("America/St_Johns", 2010, 2, id="a_minute_past_midnight_st_johns"),
        pytest.param("Asia/Kathmandu", 1986, 1, id="a_quarter_of_an_hour_kathmandu"),
        pytest.param("Antarctica/Troll", 2023, 2, id="two_hours_troll"),
        pytest.param("Antarctica/Casey", 2010, 1, id="three_hours_back_casey"),
        pytest.param("Antarctica/Casey", 2016, 1, id="three_hours_forward_casey"),
        pytest.param("Antarctica/Vostok", 1994, 2, id="seven_hours_vostok"),
        pytest.param("Europe/Dublin", 1971, 1, id="winter_is_the_exception_dublin"),
        pytest.param("Europe/Dublin", 2023, 2, id="winter_is_the_exception_dublin_now"),
        pytest.param("Africa/Casablanca", 2023, 2, id="ramadan_casablanca"),
        pytest.param("Asia/Gaza", 2080, 4, id="listed_far_ahead_gaza"),
        pytest.param("America/Sao_Paulo", 2018, 2, id="midnight_is_left_out_sao_paulo"),
        pytest.param("Europe/Paris", 2038, 2, id="after_2037_paris"),
        pytest.param("Australia/Lord_Howe", 2100, 2, id="after_2037_lord_howe"),
        pytest.param("America/Nuuk", 2199, 2, id="the_last_year_nuuk"),
    ],
)
def test_an_odd_change_behaves_as_in_debian(zone: str, year: int, number: int) -> None:
    found = list(changes(zone, second_of(year) - 86400, second_of(year + 1) - 86400))

    tally = compare(found, RULES)

    assert tally.differences == []
    assert len(found) == number
