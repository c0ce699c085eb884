"""The year of an action, as weeks of days."""

from datetime import UTC, date, datetime, timedelta

from services.actions.page import Day, Year
from web.dashboard.drawing.year import MOST_LINKS, STEP, DrawnYear, drawn_year

NOW = datetime(2027, 1, 4, 23, 30, tzinfo=UTC)
# In Tokyo.
TODAY = date(2027, 1, 5)


def drawn(states: dict[date, str]) -> DrawnYear:
    days = {at: Day(state, {state: 1}) for at, state in states.items()}
    return drawn_year(Year(NOW, "Asia/Tokyo", days), "/operations?app=shop")


def test_today_stands_in_the_last_week_and_the_first_day_in_the_first() -> None:
    year = drawn({TODAY: "failed", date(2026, 1, 6): "success"})

    assert year.days == {
        "bad": f"M{year.width - STEP} {STEP}h9v9h-9z",
        "good": f"M0 {STEP}h9v9h-9z",
    }
    assert year.summary == "1 failed, 1 success"


def test_a_day_in_trouble_leads_to_its_runs() -> None:
    (one,) = drawn({TODAY: "failed", date(2027, 1, 4): "success"}).troubles

    assert one.tip == "Tue 2027-01-05: 1 failed"
    assert one.href == "/operations?app=shop&since=2027-01-05T00:00:00&until=2027-01-06T00:00:00"


def test_a_year_of_failures_links_its_newest_days() -> None:
    year = drawn({TODAY - timedelta(days=ago): "failed" for ago in range(300)})

    assert len(year.troubles) == MOST_LINKS
    assert year.troubles[-1].tip.startswith("Tue 2027-01-05")
