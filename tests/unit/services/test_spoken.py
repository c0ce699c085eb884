"""Instants as people say them."""

from datetime import UTC, datetime

import pytest

from services.finding import spoken_instant
from tests.tables import table

# 09:30 in Paris, and the evening before in Honolulu.
NOW = datetime(2026, 11, 26, 8, 30, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    table(__file__, "a_text_is_read_on_the_clock_of_the_zone"),
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
