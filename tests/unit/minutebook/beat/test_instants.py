from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import crontab, schedule, solar

from minutebook.beat import schedule_of
from minutebook.beat.instants import Ran, counts_by_the_wall, of_entry
from tests.ticks import HOUR, MINUTE

NOW = datetime(2026, 11, 26, 3, tzinfo=UTC)
NEVER_RUN = Ran()


def app_in(zone: str = "UTC", **settings: Any) -> Celery:
    app = Celery("shop", set_as_current=False)
    app.conf.update(timezone=zone, **settings)
    return app


def found(
    given: Any, ran: Ran = NEVER_RUN, now: datetime = NOW, zone: str = "UTC"
) -> Sequence[datetime]:
    app = app_in(zone)
    return of_entry(ScheduleEntry("it", "it", schedule=given, app=app), app, ran, now)


SIX_HOURS = schedule(6 * HOUR)


@pytest.mark.parametrize(
    ("given", "ran", "first", "second"),
    [
        (crontab("0", "5"), Ran(), "26T05:00", "27T05:00"),
        (crontab("0", "5"), Ran(NOW - 22 * HOUR), "26T05:00", "27T05:00"),
        # Overdue, and one whose run of a day ago was not recorded.
        (crontab("0", "2"), Ran(NOW - 25 * HOUR), "26T03:00", "27T02:00"),
        (crontab("58", "2"), Ran(NOW - 24 * HOUR), "27T02:58", "28T02:58"),
        (SIX_HOURS, Ran(NOW - 2 * HOUR), "26T07:00", "26T13:00"),
        (schedule(2 * HOUR), Ran(NOW - 5 * HOUR), "26T03:00", "26T05:00"),
        (schedule(60), Ran(NOW - 4 * MINUTE), "26T03:01", "26T03:02"),
        # What was looked at before, planned, or overslept.
        (SIX_HOURS, Ran(NOW - 2 * HOUR, NOW + HOUR), "26T07:00", "26T13:00"),
        (SIX_HOURS, Ran(None, NOW + HOUR), "26T04:00", "26T10:00"),
        (SIX_HOURS, Ran(None, NOW - HOUR), "26T03:00", "26T09:00"),
    ],
)
def test_the_next_instants_are_those_of_the_loop_of_beat(
    given: Any, ran: Ran, first: str, second: str
) -> None:
    instants = found(given, ran)

    assert [f"{at:%dT%H:%M}" for at in instants[:2]] == [first, second]
    assert len(instants) == 5


def test_a_crontab_follows_its_zone_through_a_clock_change() -> None:
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)

    instants = found(crontab("0", "5"), now=before, zone="Europe/Paris")

    assert [at.hour for at in instants] == [4, 4, 4, 4, 4]
    instants = found(crontab("0", "5"), now=before - timedelta(days=1), zone="Europe/Paris")
    assert [at.hour for at in instants] == [3, 4, 4, 4, 4]


def test_five_leap_days_are_found() -> None:
    instants = found(crontab("0", "5", day_of_month="29", month_of_year="2"))

    assert [at.year for at in instants] == [2028, 2032, 2036, 2040, 2044]


def test_the_clock_of_a_schedule_is_its_own_again() -> None:
    given: Any = solar("sunset", 48.85, 2.35)

    assert len(found(given)) == 5
    assert given.nowfun is None


def test_the_export_has_the_next_instants_of_what_beat_would_send() -> None:
    entries: dict[str, Any] = {
        "daily": {"task": "tasks.it", "schedule": crontab("0", "5")},
        "often": {"task": "tasks.it", "schedule": 60.0},
    }
    written = schedule_of(app_in(beat_schedule=entries))["entries"]

    assert [len(one.get("next_at", ())) for one in written] == [5, 0]


@pytest.mark.parametrize(
    ("zone", "release", "is_other"),
    [
        ("America/New_York", (5, 6), True),
        ("Europe/Paris", (5, 7), False),
        ("UTC", (5, 6), False),
        ("Asia/Tokyo", (5, 6), False),
    ],
)
def test_releases_before_5_7_count_intervals_by_the_wall_clock(
    monkeypatch: pytest.MonkeyPatch, zone: str, release: tuple[int, int], is_other: bool
) -> None:
    monkeypatch.setattr("celery.VERSION", release)

    assert counts_by_the_wall(app_in(zone)) == is_other
