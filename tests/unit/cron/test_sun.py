"""The sun against an astronomical library, the one by which Celery decides, and against itself."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from celery.schedules import solar

from cron import SolarEvent, SolarSchedule
from tests.ticks import DAY, MINUTE

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
END = datetime(2200, 1, 1, tzinfo=UTC)
TROMSO = (69.65, 18.96)


def random_place(random: Random, most: float) -> tuple[float, float]:
    return random.uniform(-most, most), random.uniform(-180, 180)


def random_instant(random: Random) -> datetime:
    return BEGINNING + timedelta(seconds=random.randrange(2 * 86_400, 229 * 365 * 86_400))


def by_celery(schedule: SolarSchedule, after: datetime) -> datetime:
    known = solar(schedule.event.value, schedule.lat, schedule.lon, nowfun=lambda: after)
    return after + known.remaining_estimate(after)


@pytest.mark.parametrize("event", SolarEvent)
def test_an_event_is_at_the_minute_at_which_celery_has_it(event: SolarEvent) -> None:
    random = Random(event.value)
    for _ in range(60):
        # Nearer to the poles the sun may touch the height for an hour: seconds of arc are minutes.
        schedule = SolarSchedule(event, *random_place(random, 55))
        expected = by_celery(schedule, random_instant(random))

        found = schedule.next(expected - 2 * MINUTE)

        assert found is not None
        assert abs(found - expected) < timedelta(seconds=45), (schedule, expected)
        assert found.second == found.microsecond == 0


@pytest.mark.parametrize("event", SolarEvent)
def test_the_four_questions_have_one_answer(event: SolarEvent) -> None:
    random = Random(event.value)
    for _ in range(10):
        schedule = SolarSchedule(event, *random_place(random, 90))
        since = random_instant(random)
        until = since + timedelta(seconds=random.randrange(40 * 86_400))

        listed = schedule.between(since, until)

        assert listed == sorted(set(listed))
        assert schedule.count(since, until) == len(listed)
        assert schedule.last(since, until) == (listed[-1] if listed else None)
        walked, at = [], schedule.next(since)
        while at is not None and at <= until:
            walked.append(at)
            assert schedule.count(at - MINUTE, at) == 1
            assert schedule.last(BEGINNING, at) == at
            at = schedule.next(at)
        assert walked == listed


def test_the_polar_night_has_no_sunrise_and_the_midnight_sun_no_sunset() -> None:
    rising, setting = (
        SolarSchedule(event, *TROMSO) for event in (SolarEvent.SUNRISE, SolarEvent.SUNSET)
    )

    first = rising.next(datetime(2026, 12, 1, tzinfo=UTC))
    last = setting.last(BEGINNING, datetime(2026, 7, 1, tzinfo=UTC))

    assert first is not None
    assert first.date() == datetime(2027, 1, 15, tzinfo=UTC).date()
    assert last is not None
    assert last.date() == datetime(2026, 5, 17, tzinfo=UTC).date()
    assert rising.count(first - 30 * DAY, first - MINUTE) == 0


@pytest.mark.parametrize("event", SolarEvent)
@pytest.mark.parametrize("lat", [-90.0, 90.0])
def test_there_is_a_next_event_at_the_poles_too(event: SolarEvent, lat: float) -> None:
    schedule = SolarSchedule(event, lat, 0.0)
    now = datetime(2026, 11, 22, tzinfo=UTC)

    first = schedule.next(now)

    assert first is not None
    assert now < first < now + 366 * DAY


def test_the_years_are_those_of_cron_rules() -> None:
    noon = SolarSchedule(SolarEvent.SOLAR_NOON, 0.0, 0.0)

    assert noon.next(END - DAY) is not None
    assert noon.next(END) is None
    assert noon.next(BEGINNING - 100 * DAY) == noon.next(BEGINNING)
    assert noon.last(BEGINNING - 100 * DAY, BEGINNING) is None
    assert noon.between(END, BEGINNING) == []
