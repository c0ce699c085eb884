"""The place up to which everything is counted, as it is stored."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from models.store.totals import FIRST_ID, Place

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
PLACE = Place(NOW - timedelta(minutes=1), UUID(int=7), NOW - timedelta(minutes=2), 7)


def test_a_place_is_read_as_it_was_stored() -> None:
    assert Place.of(PLACE.text(), NOW) == PLACE


def test_a_place_without_a_span_is_read() -> None:
    before = PLACE.text().replace(', "span_id": 7', "")

    assert Place.of(before, NOW) == replace(PLACE, span_id=0)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "rubbish",
        "[]",
        PLACE.text().replace("2027", "soon"),
        PLACE.text().replace(str(PLACE.id), "7"),
        PLACE.text().replace("2027", "2028"),
        PLACE.text().replace(": 7", ": -7"),
        PLACE.text().replace(": 7", f": {2**63}"),
    ],
)
def test_counting_begins_now_where_the_place_is_missing_unreadable_or_ahead(
    text: str | None,
) -> None:
    assert Place.of(text, NOW) == Place(NOW, FIRST_ID, NOW)
