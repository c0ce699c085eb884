from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab, maybe_schedule, schedule
from django_celery_beat.tzcrontab import TzAwareCrontab

from minutebook.beat.schedules import described
from runtime.clock import utc_now

TOKYO = ZoneInfo("Asia/Tokyo")


def application() -> Celery:
    app = Celery("shop", set_as_current=False)
    app.conf.update(timezone="Europe/Paris")
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
    app = application()
    found = described(maybe_schedule(given, app=app))
    zoned = application()
    zoned.conf.update(timezone=found["timezone"])

    again = crontab(**found["crontab"])
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
        described(maybe_schedule(given, app=application()))


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

    found = described(maybe_schedule(given, app=application()))
    assert found == {"other": f"{kind.__module__}.{kind.__qualname__}"}
