"""How the dashboard draws the timeline."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from services.overview.timeline import SCALES, Timeline
from web.dashboard.drawing import timeline

NOW = datetime(2026, 11, 22, 20, 10, tzinfo=UTC)


def drawn(scale: tuple[timedelta, timedelta] = SCALES[-1]) -> Timeline:
    back, span = scale
    return Timeline(
        since=NOW - back,
        now=NOW,
        until=NOW + back / 2,
        span_s=span.total_seconds(),
        lanes=(),
        outages=(),
    )


def test_a_zone_with_half_an_hour_has_labels_too() -> None:
    hours = timeline(drawn(), "Asia/Kolkata").hours

    assert [one.text for one in hours][1:3] == ["06:00", "09:00"]


def test_an_hour_at_an_edge_of_the_timeline_has_a_line_without_a_cut_off_label() -> None:
    hours = timeline(drawn(), "Europe/Paris").hours

    texts = [one.text for one in hours]
    assert texts[0] == "Sun 00:00"
    assert texts[-2:] == ["06:00", ""]
    assert hours[-1].x > hours[-2].x


@pytest.mark.parametrize("scale", SCALES, ids=lambda one: str(one[0]))
def test_every_scale_has_labels_that_stand_apart(scale: tuple[timedelta, timedelta]) -> None:
    places = [one.x for one in timeline(drawn(scale), "Asia/Kolkata").hours]

    assert 5 <= len(places) <= 13
    assert min(b - a for a, b in pairwise(places)) > 7
