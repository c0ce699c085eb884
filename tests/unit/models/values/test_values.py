from datetime import UTC, datetime

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
from tests.tables import table


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize("value", [True, "true", "True", "TRUE"])
def test_true_may_be_a_text(value: object) -> None:
    assert parse_flag(value) is True


@pytest.mark.parametrize("value", [False, "false", "False", "FALSE"])
def test_false_may_be_a_text(value: object) -> None:
    assert parse_flag(value) is False


@pytest.mark.parametrize(
    "name", ["a", "weekly update", "Ёлка", "日報", "👩👧", "n" * 200, "a.b/c:d"]
)
def test_a_name_may_be_in_any_language(name: str) -> None:
    assert name == parse_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *table(__file__, "other_values_are_no_names"),
        "a\ud800",
        "n" * 201,
    ],
)
def test_other_values_are_no_names(name: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_name(name)


def test_a_text_may_have_lines_and_tabs() -> None:
    assert parse_text("a\n\tb\r\n") == "a\n\tb\r\n"
    with pytest.raises(ValueError, match="control character"):
        parse_text("a\x1b[31m")


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("2026-12-24T18:00:00Z", "UTC", utc(2026, 12, 24, 18)),
        ("2026-12-24T18:00", "Europe/Paris", utc(2026, 12, 24, 17)),
        ("2026-12-24 18:00:30", "Asia/Kathmandu", utc(2026, 12, 24, 12, 15, 30)),
        ("2026-12-24T18:00+05:30", "Europe/Paris", utc(2026, 12, 24, 12, 30)),
        ("2026-12-24T18:00+01", "UTC", utc(2026, 12, 24, 17)),
        ("2026-12-24T24:00", "UTC", utc(2026, 12, 25)),
        pytest.param("2027-03-28T02:30", "Europe/Paris", utc(2027, 3, 28, 1), id="gap_end"),
        pytest.param(
            "2027-10-31T02:30", "Europe/Paris", utc(2027, 10, 31, 0, 30), id="first_of_two"
        ),
        pytest.param("2011-12-30T12:00", "Pacific/Apia", utc(2011, 12, 30, 10), id="skipped_day"),
        pytest.param("2038-07-01T00:00", "Europe/Paris", utc(2038, 6, 30, 22), id="after_2037"),
        pytest.param("1970-01-01T00:00", "UTC", utc(1970, 1, 1), id="earliest"),
        pytest.param("2199-12-31T23:59:59", "UTC", utc(2199, 12, 31, 23, 59, 59), id="latest"),
    ],
)
def test_an_instant_is_utc(text: str, zone: str, instant: datetime) -> None:
    assert instant == parse_instant(text, zone)


@pytest.mark.parametrize(
    "text",
    [
        "2026", "2026-12", "2026-12-24", "20261224T180000Z", "2026-W52-4T18:00", "tomorrow", "",
        "2026-02-30T00:00", "2026-12-24T25:00", "2026-12-24T18:60", "2026-12-24T18:00:60Z",
        "2026-12-24T18:00+25:00", "1969-12-31T23:59Z", "2200-01-01T00:00", "0001-01-01T00:00+14:00",
        "9999-12-31T23:59-14:00", "2026-12-24T18:00:00.5Z", "٢٠٢٦-12-24T18:00", 1798761600, None,
        "1969-06-01T00:00",
    ],
)  # fmt: skip
def test_other_values_are_no_instants(text: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_instant(text, "UTC")


@pytest.mark.parametrize(
    ("text", "second"),
    [("2026-12-24T18:00:00.000001Z", 1), ("2026-12-24T18:00:59.9Z", 60), ("2026-12-24T18:00Z", 0)],
)
def test_a_fraction_may_be_rounded_up(text: str, second: int) -> None:
    found = parse_instant(text, "UTC", round_up=True)

    assert (found - utc(2026, 12, 24, 18)).total_seconds() == second


@given(st.integers(0, int(utc(2199, 12, 31).timestamp())))
def test_an_instant_reads_back_what_was_written(second: int) -> None:
    whole = datetime.fromtimestamp(second, UTC)

    assert whole == parse_instant(format_instant(whole), "Asia/Tokyo")


@pytest.mark.parametrize(
    "value", ["ann", "ann@localhost", "ann@x.test", "Ann <ann@example.com>", "a@b@example.com",
              "ann@example.com\nBcc: x@example.com", "a" * 300 + "@example.com", 5, None]
)  # fmt: skip
def test_other_values_are_no_addresses(value: object) -> None:
    with pytest.raises(ValueError, match="e-mail address"):
        parse_address(value)


@pytest.mark.parametrize(
    "url", ["https://example.com", "http://127.0.0.1:8000/a?b=c#d", "http://[::1]/"]
)
def test_a_url_is_unchanged(url: str) -> None:
    assert url == parse_url(url)


@pytest.mark.parametrize(
    "url", ["example.com", "ftp://example.com", "file:///etc/passwd", "https://", "https://:80",
            "https://a b", "https://example.com:99999", "https://[::1", "https://u:p@example.com",
            "https://e\n.com", "https://example.com/" + "a" * 2000, 5, None, ""]
)  # fmt: skip
def test_other_values_are_no_urls(url: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_url(url)
