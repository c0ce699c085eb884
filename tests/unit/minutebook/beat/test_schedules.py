"""How a schedule of beat is described, and when it is due next."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import crontab, maybe_schedule, schedule, solar
from django_celery_beat.tzcrontab import TzAwareCrontab

from minutebook.beat import schedule_of
from minutebook.beat.instants import Ran, counts_by_the_wall, of_entry
from minutebook.beat.schedules import described
from runtime.clock import utc_now
from tests.ticks import HOUR, MINUTE

TOKYO = ZoneInfo("Asia/Tokyo")
NOW = datetime(2026, 11, 26, 3, tzinfo=UTC)
NEVER_RUN = Ran()
SIX_HOURS = schedule(6 * HOUR)


def app_in(zone: str = "UTC", **settings: Any) -> Celery:
    app = Celery("shop", set_as_current=False)
    app.conf.update(timezone=zone, **settings)
    return app


def clock(zone: tzinfo) -> Callable[[], datetime]:
    return lambda: utc_now().astimezone(zone)


def naive_utc() -> datetime:
    return utc_now().replace(tzinfo=None)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(crontab("0", "9"), id="plain"),
        pytest.param(crontab("0", "9", nowfun=clock(TOKYO)), id="tokyo"),
        pytest.param(crontab("0", "9", nowfun=naive_utc), id="naive_utc"),
        pytest.param(TzAwareCrontab("0", "9", tz=TOKYO), id="of_django_celery_beat"),
    ],
)
def test_a_crontab_is_due_next_when_celery_says(given: Any) -> None:
    app = app_in("Europe/Paris")
    found = described(maybe_schedule(given, app=app))
    zoned, again = app_in(found["timezone"]), crontab(**found["crontab"])

    # One may become due between two looks at the clock.
    assert next_of(given, app) <= next_of(again, zoned) <= next_of(given, app)


def next_of(given: Any, app: Celery) -> datetime:
    schedule: Any = maybe_schedule(given, app=app)
    since = schedule.maybe_make_aware(schedule.now())
    begin, span, _ = schedule.remaining_delta(since)
    at: datetime = begin + span
    return at.astimezone(UTC).replace(second=0, microsecond=0)


@pytest.mark.parametrize(
    "nowfun",
    [
        pytest.param(lambda: utc_now() + timedelta(hours=1), id="an_hour_ahead"),
        pytest.param(
            lambda: utc_now().astimezone(timezone(timedelta(hours=5))).replace(tzinfo=None),
            id="naive_local",
        ),
    ],
)
@pytest.mark.parametrize("kind", [crontab, schedule])
def test_a_clock_that_is_wrong_is_refused(nowfun: Any, kind: Any) -> None:
    given = schedule(60, nowfun=nowfun) if kind is schedule else crontab(nowfun=nowfun)

    with pytest.raises(ValueError, match=r"its nowfun says .* which is not the time"):
        described(maybe_schedule(given, app=app_in("Europe/Paris")))


class Nightly(crontab):
    """A crontab of an application, which may do anything."""


class Often(schedule):
    """An interval of an application."""


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(Nightly("0", "3"), id="crontab"),
        pytest.param(Often(60), id="schedule"),
        pytest.param(type("Zoned", (TzAwareCrontab,), {})(tz=TOKYO), id="of_tz_aware"),
    ],
)  # fmt: skip
def test_a_subclass_is_named_by_its_class(given: Any) -> None:
    kind = type(given)

    found = described(maybe_schedule(given, app=app_in("Europe/Paris")))
    assert found == {"other": f"{kind.__module__}.{kind.__qualname__}"}


def found(
    given: Any, ran: Ran = NEVER_RUN, now: datetime = NOW, zone: str = "UTC"
) -> Sequence[datetime]:
    app = app_in(zone)
    return of_entry(ScheduleEntry("it", "it", schedule=given, app=app), app, ran, now)


@pytest.mark.parametrize(
    ("given", "ran", "first", "second"),
    [
        (crontab("0", "5"), NEVER_RUN, "26T05:00", "27T05:00"),
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
def test_the_next_instants_are_those_of_beat(given: Any, ran: Ran, first: str, second: str) -> None:
    instants = found(given, ran)

    assert [f"{at:%dT%H:%M}" for at in instants[:2]] == [first, second]
    assert len(instants) == 5


def test_a_crontab_follows_its_zone_through_a_clock_change() -> None:
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)

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
        ("Asia/Tokyo", (5, 6), False),
    ],
)
def test_releases_before_5_7_count_intervals_by_the_wall_clock(
    monkeypatch: pytest.MonkeyPatch, zone: str, release: tuple[int, int], is_other: bool
) -> None:
    monkeypatch.setattr("celery.VERSION", release)

    assert counts_by_the_wall(app_in(zone)) == is_other
