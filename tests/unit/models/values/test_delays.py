"""When an event makes something due; the ranges of events that are asked for miss none."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from dateutil.relativedelta import relativedelta
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.values.delays import delay_of, rounded_up
from models.values.durations import format_delay, parse_delay
from models.values.zones import instant_of

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
ZONES = (
    *("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"),
    *("Asia/Kathmandu", "Africa/Monrovia", "America/St_Johns", "Pacific/Kiritimati"),
)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("event_at", "delay", "zone", "due"),
    [
        pytest.param("2026-01-01T00:00:00", "P7DT30S", None, "2026-01-08T00:00:30", id="brief"),
        pytest.param("2026-01-01T00:00:00.000001", "PT0S", None, "2026-01-01T00:00:01", id="up"),
        pytest.param("2026-01-01T00:00:00", "PT0S", None, "2026-01-01T00:00:00", id="whole"),
        pytest.param("2026-01-31T12:00:00", "P1M", "UTC", "2026-02-28T12:00:00", id="clipped"),
        pytest.param("2028-01-31T12:00:00", "P1M", "UTC", "2028-02-29T12:00:00", id="leap_year"),
        pytest.param("2028-02-29T12:00:00", "P1Y", "UTC", "2029-02-28T12:00:00", id="leap_day"),
        pytest.param("2026-01-31T12:00:00", "P1M1D", "UTC", "2026-03-01T12:00:00", id="then_days"),
        pytest.param(
            "2026-01-15T08:00:00", "P6M", "Europe/Paris", "2026-07-15T07:00:00", id="on_the_wall"
        ),
        pytest.param(
            "2026-02-28T23:30:00", "P1M", "Europe/Paris", "2026-03-31T22:30:00", id="local_date"
        ),
        pytest.param(
            "2026-02-28T01:30:00", "P1M1D", "Europe/Paris", "2026-03-29T01:30:00", id="exact_day"
        ),
        pytest.param(
            "2026-01-29T01:30:00", "P2M", "Europe/Paris", "2026-03-29T01:00:00", id="gap_ends"
        ),
        pytest.param(
            "2026-09-25T00:30:00", "P1M", "Europe/Paris", "2026-10-25T00:30:00", id="first_time"
        ),
    ],
)
def test_an_event_is_due_its_delay_later(
    event_at: str, delay: str, zone: str | None, due: str
) -> None:
    assert delay_of(delay, zone).due(utc(event_at)) == utc(due)


def test_what_lies_beyond_the_calendar_is_never_due() -> None:
    assert delay_of("P100Y", "UTC").due(utc("2190-01-01T00:00:00")) is None
    assert delay_of("P1D", None).due(datetime.max.replace(tzinfo=UTC)) is None


def test_an_exact_delay_asks_for_one_range_as_long_as_the_window() -> None:
    since, until = utc("2026-01-08T00:00:30.5"), utc("2026-01-08T00:05:30.2")

    (found,) = delay_of("P7DT30S", None).instants(since, until)

    assert found == (utc("2026-01-01T00:00:00"), utc("2026-01-01T00:05:00"))


def test_the_last_of_february_is_due_for_four_days_of_january() -> None:
    since, until = utc("2026-02-28T12:00:00"), utc("2026-02-28T12:01:00")

    found = delay_of("P1M", "UTC").instants(since, until)

    assert [at.day for at, _ in found] == [28, 29, 30, 31]
    assert all(end - begin == timedelta(minutes=1) for begin, end in found)


def test_a_day_that_the_earlier_month_lacks_has_no_event() -> None:
    since, until = utc("2026-03-30T12:00:00"), utc("2026-03-30T12:01:00")

    assert delay_of("P1M", "UTC").instants(since, until) == []


def test_a_year_of_downtime_asks_for_about_a_year() -> None:
    ranges = delay_of("P3M", "Europe/Paris").instants(
        utc("2026-01-01T00:00:00"), utc("2027-01-01T00:00:00")
    )

    total = sum((end - begin for begin, end in ranges), timedelta(0))
    assert timedelta(days=364) < total < timedelta(days=371)
    assert len(ranges) < 20


# Instants about which the clocks of these zones change, and the ends of months.
NEAR = tuple(
    utc(text)
    for text in (
        *("2026-03-29T01:00:00", "2026-10-25T01:00:00", "2026-03-08T07:00:00"),
        *("2026-11-01T06:00:00", "2026-04-04T15:00:00", "2026-10-03T15:30:00"),
        *("2011-12-30T10:00:00", "1994-12-31T10:00:00", "2026-02-28T23:59:59"),
        *("2028-02-29T00:00:00", "2026-12-31T23:59:59", "1996-03-01T00:00:00"),
    )
)
instants = st.builds(
    lambda near, s, us: near + timedelta(seconds=s, microseconds=us),
    st.sampled_from(NEAR),
    st.integers(-200_000, 200_000),
    st.sampled_from([0, 0, 1, 500_000, 999_999]),
)
delays = st.builds(
    lambda months, s: format_delay(relativedelta(months=months), timedelta(seconds=s)),
    st.integers(0, 30),
    st.sampled_from([0, 1, 30, 3_600, 86_399, 86_400, 90_001]),
).filter(lambda text: text != "PT0S")


@settings(max_examples=600, deadline=None)
@given(
    due_near=instants,
    delay=delays,
    zone=st.sampled_from(ZONES),
    length_s=st.sampled_from([1, 60, 300, 3_600, 100_000]),
    offsets=st.lists(st.integers(-120_000, 120_000), max_size=30),
)
@example(utc("2026-03-29T01:00:00"), "P1M", "Europe/Paris", 60, [0, -3600, 1800])
def test_the_ranges_with_the_exact_filter_find_what_trying_every_event_finds(
    due_near: datetime, delay: str, zone: str, length_s: int, offsets: list[int]
) -> None:
    read = delay_of(delay, zone)
    calendar, exact = parse_delay(delay)
    since, until = due_near - timedelta(seconds=length_s), due_near
    about = [
        due_near - exact - relativedelta(months=read.months) + timedelta(days=days)
        for days in (-1, 0, 1, 2, 3)
    ]
    events = [at + timedelta(seconds=s) for at in about for s in (*offsets, 0, -1, -length_s)]
    ranges = read.instants(since, until)

    expected = {at for at in events if since < _brute(at, calendar, exact, zone) <= until}

    asked = {at for at in events if any(begin < at <= end for begin, end in ranges)}
    found = {at for at in asked if (due := read.due(at)) is not None and since < due <= until}
    assert found == expected


def _brute(at: datetime, calendar: relativedelta, exact: timedelta, zone: str) -> datetime:
    """Return the due instant by dateutil and zoneinfo."""
    whole = rounded_up(at)
    if not calendar:
        return whole + exact
    wall = whole.astimezone(ZoneInfo(zone)).replace(tzinfo=None) + calendar
    return instant_of(wall, zone) + exact


@settings(max_examples=200, deadline=None)
@given(
    until=instants,
    delay=delays,
    zone=st.sampled_from(ZONES),
    length_s=st.sampled_from([60, 300, 3_600]),
)
def test_the_ranges_are_hardly_longer_than_the_window(
    until: datetime, delay: str, zone: str, length_s: int
) -> None:
    """Four days become one at the month's end; a repeated hour is asked for twice."""
    ranges = delay_of(delay, zone).instants(until - timedelta(seconds=length_s), until)

    total = sum((end - begin for begin, end in ranges), timedelta(0))
    longest_gap = DAY if zone in {"Pacific/Apia", "Pacific/Kiritimati"} else HOUR
    assert total <= 8 * (timedelta(seconds=length_s) + longest_gap)
    assert all(begin < end for begin, end in ranges)
    assert all(a[1] < b[0] for a, b in pairwise(ranges))
