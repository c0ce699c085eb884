"""The year of an action, as weeks of days."""

from datetime import UTC, date, datetime

from services.actions.page import Day, Year
from web.dashboard.drawing.year import drawn_year

NOW = datetime(2027, 1, 4, 23, 30, tzinfo=UTC)


def test_a_day_leads_to_its_runs_and_today_stands_in_the_last_week() -> None:
    today = date(2027, 1, 5)
    days = {today: Day("failed", {"failed": 1}), date(2026, 1, 6): Day("success", {"success": 9})}

    first, last = drawn_year(Year(NOW, "Asia/Tokyo", days), "/operations?app=shop").days

    assert (first.x, first.tone, last.tone) == (0, "good", "bad")
    assert last.x + last.width <= 100
    assert last.tip == "Tue 2027-01-05: 1 failed"
    assert last.href == "/operations?app=shop&since=2027-01-05T00:00:00&until=2027-01-06T00:00:00"
