from datetime import timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.values.durations import LONGEST, format_span, parse_delay, parse_span
from tests.tables import table


@pytest.mark.parametrize(
    ("text", "seconds"),
    table(__file__, "a_span_is_exact"),
)
def test_a_span_is_exact(text: str, seconds: int) -> None:
    assert timedelta(seconds=seconds) == parse_span(text)


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        *table(__file__, "a_wrong_span_is_refused_with_a_remedy"),
        ("x" * 100_000, "ISO 8601"),
    ],
)
def test_a_wrong_span_is_refused_with_a_remedy(value: object, remedy: str) -> None:
    with pytest.raises(ValueError, match=r".+") as refused:
        parse_span(value)

    assert remedy in str(refused.value)


def test_the_bounds_of_a_span_are_inclusive() -> None:
    bounded = partial(parse_span, least=timedelta(minutes=1), most=timedelta(days=1))

    assert bounded("PT1M") == timedelta(minutes=1)
    assert bounded("P1D") == timedelta(days=1)
    with pytest.raises(ValueError, match='"PT1M" or more'):
        bounded("PT59S")
    with pytest.raises(ValueError, match='"P1D" or less'):
        bounded("PT86401S")


@pytest.mark.parametrize(("number", "seconds"), [(90, 90), (60.0, 60)])
def test_whole_seconds_are_a_span_where_they_are_allowed(number: float, seconds: int) -> None:
    assert timedelta(seconds=seconds) == parse_span(number, seconds_allowed=True)


@given(st.integers(1, int(LONGEST.total_seconds())))
def test_a_span_reads_back_what_was_written(seconds: int) -> None:
    span = timedelta(seconds=seconds)

    assert span == parse_span(format_span(span))


@pytest.mark.parametrize(
    ("text", "written"),
    [("P1W", "P7D"), ("PT60M", "PT1H"), ("P7DT30S", "P7DT30S"), ("PT86400S", "P1D")],
)
def test_a_span_is_written_canonically(text: str, written: str) -> None:
    assert written == format_span(parse_span(text))


@pytest.mark.parametrize(
    ("text", "days"), [("P1M", 30), ("P1Y", 365), ("P2M1W", 67), ("P1Y2M3DT5H", 428)]
)
def test_a_delay_of_months_is_refused_with_the_days_to_write(text: str, days: int) -> None:
    with pytest.raises(ValueError, match=f'no fixed length; write days, such as "P{days}D"'):
        parse_delay(text)
