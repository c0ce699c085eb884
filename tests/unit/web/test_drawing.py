"""How the dashboard draws the timeline."""

from datetime import UTC, datetime, timedelta

from views.overview.timeline import Timeline
from web.dashboard.drawing import timeline

NOW = datetime(2026, 11, 22, 20, 10, tzinfo=UTC)


def test_an_hour_at_an_edge_of_the_timeline_has_a_line_without_a_cut_off_label() -> None:
    since, until = NOW - timedelta(hours=24), NOW + timedelta(hours=12)
    shown = Timeline(since=since, now=NOW, until=until, lanes=(), load=(), outages=())

    hours = timeline(shown, "Europe/Paris").hours

    texts = [one.text for one in hours]
    assert texts[0] == "Sun 00:00"
    assert texts[-2:] == ["06:00", ""]
    assert hours[-1].x > hours[-2].x
