from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.values import (
    format_instant,
    parse_address,
    parse_flag,
    parse_instant,
    parse_name,
    parse_text,
    parse_url,
)
from models.values.delays import due_after, events_due
from models.values.durations import LONGEST, format_span, parse_delay, parse_span
from models.values.references import is_reference, parse_reference
from tests.tables import table
from tests.ticks import SECOND

START = datetime(2026, 3, 29, 1, tzinfo=UTC)
WEEK = parse_delay("P7DT30S")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("value", [True, "true", "True", "TRUE"])
def test_true_may_be_a_text(value: object) -> None:
    assert parse_flag(value) is True


@pytest.mark.parametrize("value", [False, "false", "False", "FALSE"])
def test_false_may_be_a_text(value: object) -> None:
    assert parse_flag(value) is False


@pytest.mark.parametrize("name", ["a", "weekly update", "日報", "👩👧", "n" * 200, "a.b/c:d"])
def test_a_name_may_be_in_any_language(name: str) -> None:
    assert name == parse_name(name)


@pytest.mark.parametrize(
    "name", [*table(__file__, "other_values_are_no_names"), "a\ud800", "n" * 201]
)
def test_other_values_are_no_names(name: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_name(name)


def test_a_text_may_have_lines_and_tabs() -> None:
    assert parse_text("a\n\tb\r\n") == "a\n\tb\r\n"
    with pytest.raises(ValueError, match="control character"):
        parse_text("a\x1b[31m")


@pytest.mark.parametrize(("text", "zone", "instant"), table(__file__, "an_instant_is_utc"))
def test_an_instant_is_utc(text: str, zone: str, instant: str) -> None:
    assert utc(instant) == parse_instant(text, zone)


@pytest.mark.parametrize("text", table(__file__, "other_values_are_no_instants"))
def test_other_values_are_no_instants(text: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_instant(text, "UTC")


@pytest.mark.parametrize(
    ("text", "second"),
    [("2026-12-24T18:00:00.000001Z", 1), ("2026-12-24T18:00:59.9Z", 60), ("2026-12-24T18:00Z", 0)],
)
def test_a_fraction_may_be_rounded_up(text: str, second: int) -> None:
    assert parse_instant(text, "UTC", round_up=True) == utc("2026-12-24T18:00") + second * SECOND


@given(st.integers(0, int(utc("2199-12-31").timestamp())))
def test_an_instant_reads_back_what_was_written(second: int) -> None:
    whole = datetime.fromtimestamp(second, UTC)

    assert whole == parse_instant(format_instant(whole), "Asia/Tokyo")


@pytest.mark.parametrize(
    "value",
    ["ann@localhost", "Ann <ann@example.com>", "a@b@example.com", "a" * 300 + "@example.com", None],
)
def test_other_values_are_no_addresses(value: object) -> None:
    with pytest.raises(ValueError, match="e-mail address"):
        parse_address(value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/a?b=c#d", "http://[::1]/"])
def test_a_url_is_unchanged(url: str) -> None:
    assert url == parse_url(url)


@pytest.mark.parametrize(
    "url",
    [
        *("example.com", "file:///etc/passwd", "https://", "https://:80", "https://a b"),
        *("https://example.com:99999", "https://[::1", "https://u:p@example.com"),
        *("https://e\n.com", "https://example.com/" + "a" * 2000, None),
    ],
)
def test_other_values_are_no_urls(url: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_url(url)


@pytest.mark.parametrize(("text", "seconds"), table(__file__, "a_span_is_exact"))
def test_a_span_is_exact(text: str, seconds: int) -> None:
    assert seconds * SECOND == parse_span(text)


@pytest.mark.parametrize(
    ("value", "remedy"),
    [*table(__file__, "a_wrong_span_is_refused_with_a_remedy"), ("x" * 100_000, "ISO 8601")],
)
def test_a_wrong_span_is_refused_with_a_remedy(value: object, remedy: str) -> None:
    with pytest.raises(ValueError, match=r".+") as refused:
        parse_span(value)

    assert remedy in str(refused.value)


def test_the_bounds_of_a_span_are_inclusive() -> None:
    bounded = partial(parse_span, least=timedelta(minutes=1), most=timedelta(days=1))

    assert (bounded("PT1M"), bounded("P1D")) == (timedelta(minutes=1), timedelta(days=1))
    with pytest.raises(ValueError, match='"PT1M" or more'):
        bounded("PT59S")
    with pytest.raises(ValueError, match='"P1D" or less'):
        bounded("PT86401S")


@given(st.integers(1, int(LONGEST.total_seconds())))
def test_a_span_reads_back_what_was_written(seconds: int) -> None:
    span = seconds * SECOND

    assert span == parse_span(format_span(span)) == parse_span(float(seconds), seconds_allowed=True)


@pytest.mark.parametrize(("text", "written"), [("PT60M", "PT1H"), ("P1WT30S", "P7DT30S")])
def test_a_span_is_written_canonically(text: str, written: str) -> None:
    assert written == format_span(parse_span(text))


@pytest.mark.parametrize(("text", "days"), [("P2M1W", 67), ("P1Y2M3DT5H", 428)])
def test_a_delay_of_months_is_refused_with_the_days_to_write(text: str, days: int) -> None:
    with pytest.raises(ValueError, match=f'no fixed length; write days, such as "P{days}D"'):
        parse_delay(text)


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


@pytest.mark.parametrize("text", ["env:_a1", "file:/run/secrets/token"])
def test_a_reference_is_kept_unchanged(text: str) -> None:
    assert is_reference(text)
    assert parse_reference(text) == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("TOKEN", "env:NAME"),
        ("env:MY-TOKEN", "name of a variable"),
        ("file:token", "absolute path"),
        (17, "env:NAME"),
    ],
)
def test_an_error_for_a_wrong_reference_says_what_to_write(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_reference(value)
