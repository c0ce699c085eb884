"""Rows of django-celery-beat that its own tests do not write: times without a zone."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.action.document import ParseContext
from models.errors import Refused as RefusedCommand
from moving.django_beat import entries_of
from moving.django_beat.tables import Tables, in_zone
from moving.entries import Refused
from moving.outcomes import Outcome, outcomes
from tasks.built_in import built_in_steps

NOW = datetime(2026, 11, 22, 15, tzinfo=UTC)
CONTEXT = ParseContext("UTC", NOW, built_in_steps(), created_at=NOW, celery=None)
PARIS = "Europe/Paris"
RAN = datetime(2026, 11, 22, 14, 30)  # noqa: DTZ001 - as SQLite has it
HOUR = timedelta(hours=1)
LATER = "2027-07-01 09:00:00"


def tables(*rows: Mapping[str, Any], clocked: str = LATER) -> Tables:
    """Return rows as SQLite has them, each with a schedule of its kind."""
    defaults = {"task": "shop.run", "enabled": 1}
    made = tuple(
        {"id": number, "name": f"it {number}", **defaults, **row} for number, row in enumerate(rows)
    )
    schedules: dict[str, dict[Any, dict[str, Any]]] = {
        "interval_id": {1: {"id": 1, "every": 6, "period": "hours"}},
        "crontab_id": {1: {"id": 1, "minute": "0", "hour": "4", "timezone": PARIS}},
        "clocked_id": {1: {"id": 1, "clocked_time": clocked}},
    }
    return Tables(made, schedules)


def moved(read: Tables, zone: str | None = None) -> Outcome:
    """Return what becomes of the first row."""
    return next(outcomes(entries_of(in_zone(read, zone, NOW), NOW, "celery"), CONTEXT))


def asks_for_the_zone(made: Outcome) -> bool:
    return any("--zone" in remark for remark in made.remarks)


def ran(offset: timedelta, at: datetime = RAN) -> dict[str, Any]:
    """Return a row that beat has run, in a zone with that offset."""
    return {"crontab_id": 1, "last_run_at": str(at), "date_changed": str(at + offset)}


def test_an_instant_of_a_database_without_zones_is_refused() -> None:
    starts_at = datetime(2027, 1, 1, 7)  # noqa: DTZ001 - as PostgreSQL returns it
    task = {"interval_id": 1, "start_time": starts_at}

    (made,) = entries_of(tables(task), NOW)

    assert isinstance(made, Refused), made
    why = "its instant 2027-01-01 07:00:00 has no zone: Django runs with USE_TZ = False"
    assert (made.why, made.instead) == (why, "name Django's TIME_ZONE with --zone")


@pytest.mark.parametrize(
    ("row", "clocked", "key", "instant"),
    [
        pytest.param(
            {"crontab_id": 1, "start_time": LATER}, LATER, "starts_at", "T07:00:00Z", id="start"
        ),
        pytest.param(
            {"crontab_id": 1, "expires": LATER}, LATER, "ends_at", "T07:00:00Z", id="expires"
        ),
        pytest.param(
            {"clocked_id": 1, "one_off": 1}, LATER, "due_date", "T07:00:00Z", id="clocked"
        ),
        pytest.param(
            {"clocked_id": 1, "one_off": 1},
            "2027-07-01 09:00:00.250000",
            "due_date",
            "T07:00:01Z",
            id="parts_of_a_second",
        ),
        pytest.param(
            {"clocked_id": 1, "one_off": 1},
            "2027-01-01 09:00:00",
            "due_date",
            "2027-01-01T08:00:00Z",
            id="winter",
        ),
        pytest.param(
            {"interval_id": 1, "start_time": LATER},
            LATER,
            "starting_at",
            "T07:00:00Z",
            id="interval",
        ),
        pytest.param(
            {"interval_id": 1, "date_changed": "2026-11-22 14:00:00"},
            LATER,
            "starting_at",
            "2026-11-22T19:00:00Z",
            id="counted_from_its_change",
        ),
        pytest.param(
            {"interval_id": 1, "last_run_at": "2026-11-22 14:00:00"},
            LATER,
            "starting_at",
            "2026-11-22T20:00:00Z",
            id="beat_itself_writes_utc",
        ),
        pytest.param(
            {"crontab_id": 1, "start_time": "2027-07-01 09:00:00+00:00"},
            LATER,
            "starts_at",
            "T09:00:00Z",
            id="an_offset_stays",
        ),
        pytest.param(
            {"crontab_id": 1, "start_time": datetime(2027, 7, 1, 9)},  # noqa: DTZ001 - PostgreSQL
            LATER,
            "starts_at",
            "T07:00:00Z",
            id="postgresql",
        ),
    ],
)
def test_times_without_a_zone_are_those_of_the_zone_that_is_named(
    row: Mapping[str, Any], clocked: str, key: str, instant: str
) -> None:
    made = moved(tables(row, clocked=clocked), PARIS)

    document = made.document or {}
    found = {**document["policy"], **document["when"]}[key]
    assert str(found).endswith(instant)
    assert not asks_for_the_zone(made)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        pytest.param([ran(-5 * HOUR)], "runs are recorded -5 hours", id="new_york"),
        pytest.param(
            [ran(-3.5 * HOUR + timedelta(minutes=2))], "runs are recorded -3.5 hours", id="st_johns"
        ),
        pytest.param(
            [ran(HOUR, RAN - n * 24 * HOUR) for n in (1, 2)],
            "runs are recorded +1 hours",
            id="paris",
        ),
        pytest.param(
            [ran(5.75 * HOUR, RAN - n * 24 * HOUR) for n in (1, 2, 3)],
            "runs are recorded +5.75 hours",
            id="kathmandu",
        ),
        pytest.param([ran(2 * HOUR)], "changed at 2026-11-22 16:30:00, which is ahead", id="ahead"),
        pytest.param(
            [{"interval_id": 1, "date_changed": "2026-11-22 16:00:00"}],
            "which is ahead in UTC: Django runs with USE_TZ = False: name its TIME_ZONE",
            id="never_run",
        ),
    ],
)
def test_rows_that_show_another_zone_ask_for_it(rows: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(RefusedCommand) as refused:
        moved(tables(*rows))

    assert why in str(refused.value)
    assert "--zone" in str(refused.value)
    assert moved(tables(*rows), PARIS).document is not None


@pytest.mark.parametrize(
    ("rows", "is_said"),
    [
        pytest.param([{"crontab_id": 1, "start_time": LATER}], True, id="nothing_has_run"),
        pytest.param([{"crontab_id": 1, "expires": LATER}], True, id="expires"),
        pytest.param([{"clocked_id": 1, "one_off": 1}], True, id="clocked"),
        pytest.param([{"crontab_id": 1}], False, id="no_time"),
        pytest.param(
            [{"crontab_id": 1, "start_time": f"{LATER}+00:00"}], False, id="with_an_offset"
        ),
        pytest.param(
            [{"crontab_id": 1, "start_time": LATER}, ran(timedelta(seconds=40))],
            False,
            id="a_run_shows_utc",
        ),
        pytest.param(
            [{"crontab_id": 1, "start_time": LATER}, ran(HOUR, RAN - 24 * HOUR)],
            True,
            id="one_edit_shows_nothing",
        ),
        pytest.param(
            [{"crontab_id": 1, "start_time": LATER}, ran(70 * HOUR, RAN - 99 * HOUR)],
            True,
            id="an_edit_days_later",
        ),
    ],
)
def test_a_zone_that_nothing_shows_is_said(rows: list[dict[str, Any]], is_said: bool) -> None:
    made = moved(tables(*rows))

    assert asks_for_the_zone(made) == is_said
    assert not asks_for_the_zone(moved(tables(*rows), "UTC"))


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(RefusedCommand, match="--zone: zone 'Pariss' is unknown"):
        in_zone(tables(), "Pariss", NOW)
