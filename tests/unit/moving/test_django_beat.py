"""Rows of django-celery-beat that its own tests do not write."""

from datetime import UTC, datetime

from moving.django_beat import Tables, entries_of
from moving.entries import Refused


def test_an_instant_of_a_database_without_zones_is_refused() -> None:
    task = {
        "id": 1, "name": "close", "task": "shop.close", "enabled": True, "interval_id": 1,
        "start_time": datetime(2027, 1, 1, 7),  # noqa: DTZ001 - as PostgreSQL returns it
    }  # fmt: skip
    tables = Tables((task,), {"interval_id": {1: {"id": 1, "every": 1, "period": "hours"}}})

    (made,) = entries_of(tables, datetime(2026, 11, 22, tzinfo=UTC))

    assert isinstance(made, Refused), made
    assert (
        made.why == "its instant 2027-01-01 07:00:00 has no zone: Django runs with USE_TZ = False"
    )
