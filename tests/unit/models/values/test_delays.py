from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.values.delays import due_after, events_due
from models.values.durations import parse_delay
from tests.ticks import SECOND

START = datetime(2026, 3, 29, 1, tzinfo=UTC)
WEEK = parse_delay("P7DT30S")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("event_at", "delay", "due"),
    [
        pytest.param("2026-01-01T00:00:00", WEEK, "2026-01-08T00:00:30", id="later"),
        pytest.param("2026-01-01T00:00:00.000001", timedelta(0), "2026-01-01T00:00:01", id="up"),
        pytest.param("2026-01-01T00:00:00", timedelta(0), "2026-01-01T00:00:00", id="whole"),
    ],
)
def test_an_event_is_due_its_delay_later(event_at: str, delay: timedelta, due: str) -> None:
    assert due_after(utc(event_at), delay) == utc(due)


def test_what_lies_beyond_the_calendar_is_never_due() -> None:
    last = datetime.max.replace(tzinfo=UTC)

    assert due_after(last, SECOND) is None
    assert events_due(datetime.min.replace(tzinfo=UTC), last, SECOND) is None


microseconds = st.integers(-5_000_000, 5_000_000).map(lambda us: timedelta(microseconds=us))


@given(microseconds, microseconds, st.integers(0, 100_000), microseconds)
def test_the_range_holds_exactly_the_events_that_are_due(
    before: timedelta, after: timedelta, delay_s: int, off: timedelta
) -> None:
    since, until, delay = START + before, START + after, timedelta(seconds=delay_s)
    event_at = START - delay + off
    due_at = due_after(event_at, delay)
    assert due_at is not None

    found = events_due(since, until, delay)

    assert (since < due_at <= until) is (found is not None and found[0] < event_at <= found[1])
