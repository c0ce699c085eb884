"""How the dashboard draws the timeline."""

from datetime import UTC, datetime

import pytest

from services.overview.timeline import Timeline, Zoom
from web.dashboard.drawing import timeline

NOW = datetime(2026, 11, 22, 20, 10, tzinfo=UTC)


def drawn(zoom: Zoom) -> Timeline:
    until = NOW + zoom.back / 2
    return Timeline(
        since=NOW - zoom.back,
        now=NOW,
        until=until,
        span_s=zoom.span.total_seconds(),
        lanes=(),
        load=(),
        outages=(),
    )


@pytest.mark.parametrize(
    ("zoom", "expected"),
    [
        (Zoom.HOUR, ["20:15", "20:30", "20:45", "21:00", "21:15", "21:30"]),
        (Zoom.WEEK, ["Tue 17", "Wed 18", "Thu 19", "Fri 20", "Sat 21", "Sun 22", "Mon 23"]),
    ],
)
def test_labels_are_as_far_apart_as_the_timeline_is_long(zoom: Zoom, expected: list[str]) -> None:
    hours = timeline(drawn(zoom), "Europe/Paris").hours

    assert [one.text for one in hours if one.text][: len(expected)] == expected


def test_a_zone_with_half_an_hour_has_labels_too() -> None:
    hours = timeline(drawn(Zoom.DAY), "Asia/Kolkata").hours

    assert [one.text for one in hours][1:3] == ["06:00", "09:00"]


def test_an_hour_at_an_edge_of_the_timeline_has_a_line_without_a_cut_off_label() -> None:
    hours = timeline(drawn(Zoom.DAY), "Europe/Paris").hours

    texts = [one.text for one in hours]
    assert texts[0] == "Sun 00:00"
    assert texts[-2:] == ["06:00", ""]
    assert hours[-1].x > hours[-2].x
