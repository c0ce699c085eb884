"""Instants as people say them."""

from datetime import UTC, datetime

import pytest

from models.values.spoken import spoken_instant

# 09:30 in Paris, and the evening before in Honolulu.
NOW = datetime(2026, 11, 26, 8, 30, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-11-26T08:30:15"),
        ("NOW", "2026-11-26T08:30:15"),
        ("5m", "2026-11-26T08:25:15"),
        ("5 m ago", "2026-11-26T08:25:15"),
        ("90s", "2026-11-26T08:28:45"),
        ("2h", "2026-11-26T06:30:15"),
        ("1d", "2026-11-25T08:30:15"),
        ("1w", "2026-11-19T08:30:15"),
        ("today", "2026-11-25T23:00:00"),
        ("yesterday", "2026-11-24T23:00:00"),
        ("yesterday 07:00", "2026-11-25T06:00:00"),
        ("Yesterday at 7:00", "2026-11-25T06:00:00"),
        ("tomorrow 07:00:30", "2026-11-27T06:00:30"),
        ("07:00", "2026-11-26T06:00:00"),
        ("2026-12-24", "2026-12-23T23:00:00"),
        ("2026-12-24 7:05", "2026-12-24T06:05:00"),
        ("2027-03-28 02:30", "2027-03-28T01:00:00"),
    ],
)
def test_a_text_is_read_on_the_clock_of_the_zone(text: str, expected: str) -> None:
    assert spoken_instant(text, "Europe/Paris", NOW) == datetime.fromisoformat(f"{expected}Z")


def test_today_is_that_of_the_zone() -> None:
    found = spoken_instant("today", "Pacific/Honolulu", NOW)

    assert found == datetime(2026, 11, 25, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "5", "5x", "next monday", "07", "P1D", "-5m", "1.5h", "2026-02-30", "24:61"],
)
def test_another_text_is_none(text: str) -> None:
    assert spoken_instant(text, "Europe/Paris", NOW) is None
