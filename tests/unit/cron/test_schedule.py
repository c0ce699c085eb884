import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from cron import CronSchedule, clock_changes
from tests.tables import table
from tests.work import lines_run

FACTS = json.loads(Path(__file__).with_name("facts.json").read_text())
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
LAST = datetime(2199, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
YEAR = (datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("zone", sorted({fact["tz"] for fact in FACTS}))
def test_the_facts_of_a_zone_hold(zone: str) -> None:
    wrong = []
    for fact in FACTS:
        if fact["tz"] == zone:
            schedule, now = CronSchedule(fact["rule"], zone), at(fact["now"])
            if "expect_next" in fact and schedule.next(now) != at(fact["expect_next"]):
                wrong.append((fact, schedule.next(now)))
            if "expect_prev" in fact and schedule.previous(now) != at(fact["expect_prev"]):
                wrong.append((fact, schedule.previous(now)))

    assert wrong == []


@pytest.mark.parametrize("length", [timedelta(0), timedelta(microseconds=-1), timedelta(days=-9)])
def test_an_empty_or_reversed_span_holds_nothing(length: timedelta) -> None:
    schedule = CronSchedule("* * * * *", "Europe/Paris")

    assert schedule.between(NOON, NOON + length) == []
    assert schedule.count(NOON, NOON + length) == 0
    assert schedule.last(NOON, NOON + length) is None


def test_fold_distinguishes_the_two_passes_of_an_hour() -> None:
    schedule = CronSchedule("30 2 * * *", "Europe/Paris")
    first = datetime(2026, 10, 25, 2, 0, tzinfo=ZoneInfo("Europe/Paris"))

    assert at("2026-10-25T00:30:00+00:00") == schedule.next(first)
    assert at("2026-10-26T01:30:00+00:00") == schedule.next(first.replace(fold=1))


def test_occurrences_are_in_utc_in_any_zone() -> None:
    schedule = CronSchedule("0 7 * * 1", "Europe/Paris")

    found = schedule.next(NOON.astimezone(timezone(timedelta(hours=-9, minutes=-30))))

    assert found is not None
    assert found.tzinfo is UTC
    assert at("2026-07-06T05:00:00+00:00") == found


@pytest.mark.parametrize("question", ["next", "previous"])
@pytest.mark.parametrize(
    ("instant", "words"),
    [
        pytest.param(datetime(2026, 7, 1), "no zone", id="naive"),  # noqa: DTZ001
        pytest.param(FIRST - timedelta(microseconds=1), "out of range", id="before_1970"),
        pytest.param(LAST + timedelta(microseconds=1), "out of range", id="2200"),
        pytest.param(
            datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
            "out of range",
            id="beyond_the_last_instant",
        ),
    ],
)
def test_an_instant_out_of_range_is_refused(question: str, instant: datetime, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        getattr(CronSchedule("* * * * *", "UTC"), question)(instant)


def test_what_is_no_datetime_or_an_end_out_of_range_is_refused() -> None:
    schedule = CronSchedule("* * * * *", "UTC")

    for value in (date(2026, 7, 1), 0, "2026-07-01T00:00:00Z", None):
        with pytest.raises(TypeError, match="datetime"):
            schedule.next(value)  # type: ignore[arg-type]
    for ask in (schedule.last, schedule.between, schedule.count):
        with pytest.raises(ValueError, match="out of range"):
            ask(NOON, datetime(2200, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Paris"])
def test_the_range_begins_in_1970_and_ends_before_2200(zone: str) -> None:
    schedule = CronSchedule("* * * * *", zone)

    assert schedule.previous(FIRST) is None
    assert schedule.previous(FIRST + timedelta(microseconds=1)) == FIRST
    assert schedule.next(LAST) is None
    assert at("2199-12-31T23:59:00+00:00") == schedule.previous(LAST)
    assert schedule.count(FIRST, LAST) == (LAST - FIRST) // timedelta(minutes=1)


def test_a_rare_rule_ends_with_none() -> None:
    schedule = CronSchedule("0 0 29 2 */7", "UTC")
    years = [1976, 2004, 2032, 2060, 2088, 2128, 2156, 2184]

    assert years == [instant.year for instant in schedule.between(FIRST, LAST)]
    assert schedule.next(datetime(2184, 3, 1, tzinfo=UTC)) is None
    assert schedule.previous(datetime(1976, 2, 29, tzinfo=UTC)) is None
    assert schedule.count(FIRST, LAST) == 8


def test_monrovia_ran_half_a_minute_off_until_1972() -> None:
    schedule = CronSchedule("* * * * *", "Africa/Monrovia")

    assert at("1970-01-01T00:00:30+00:00") == schedule.next(FIRST)
    assert at("1972-01-07T00:43:30+00:00") == schedule.previous(at("1972-01-07T00:44:30+00:00"))
    assert at("1972-01-07T00:45:00+00:00") == schedule.next(at("1972-01-07T00:43:30+00:00"))


@pytest.mark.parametrize("minute", [0, 30, 44])
def test_a_fixed_rule_in_the_gap_of_monrovia_occurs_at_its_end(minute: int) -> None:
    schedule = CronSchedule(f"{minute} 0 * * *", "Africa/Monrovia")
    end = at("1972-01-07T00:44:30+00:00")

    assert end == schedule.next(at("1972-01-06T12:00:00+00:00"))
    assert end == schedule.previous(at("1972-01-07T12:00:00+00:00"))
    assert schedule.count(end - timedelta(seconds=1), end) == 1


def test_schedules_are_equal_when_rule_and_zone_are_whatever_their_spelling() -> None:
    one, other = (
        CronSchedule(" 0\t7 * * MON ", "europe/paris"),
        CronSchedule("0 7 * * mon", "Europe/Paris"),
    )

    assert one == other
    assert hash(one) == hash(other)
    assert (one.rule, one.zone) == ("0 7 * * mon", "Europe/Paris")
    assert repr(one) == "CronSchedule('0 7 * * mon', 'Europe/Paris')"
    assert one != CronSchedule("0 7 * * mon", "Europe/Berlin")
    assert one != CronSchedule("0 7 * * tue", "Europe/Paris")
    assert one != "0 7 * * mon"


def test_threads_share_a_schedule() -> None:
    schedule = CronSchedule("*/7 3 5 * 1", "America/St_Johns")
    instants = [NOON + timedelta(days=day) for day in range(200)]
    expected = [schedule.next(instant) for instant in instants]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(CronSchedule("*/7 3 5 * 1", "America/St_Johns").next, instants))

    assert expected == found


@pytest.mark.parametrize("rule", ["* * * * *", "30 2 * * *", "0 0 29 2 */7", "*/7 1-3 13 * 5"])
def test_no_call_takes_long_however_far_it_looks(rule: str) -> None:
    schedule = CronSchedule(rule, "Europe/Paris")
    schedule.count(FIRST, LAST)

    # 230 years have 121 million minutes, and 84,000 days.
    assert lines_run(lambda: schedule.count(FIRST, LAST)) < 40_000
    assert lines_run(lambda: schedule.next(LAST)) < 2_000
    assert lines_run(lambda: schedule.previous(FIRST)) < 2_000
    assert lines_run(lambda: schedule.last(FIRST, LAST)) < 2_000


@pytest.mark.parametrize(("rule", "zone", "expected"), table(__file__, "a_year_of_changes"))
def test_a_year_of_changes(rule: str, zone: str, expected: list[list[object]]) -> None:
    found = clock_changes(CronSchedule(rule, zone), *YEAR)

    assert expected == [
        [one.named, one.is_gap, [f"{at:%Y-%m-%dT%H:%MZ}" for at in one.runs_at]] for one in found
    ]


def test_the_range_is_open_at_its_beginning() -> None:
    schedule = CronSchedule("30 2 * * *", "Europe/Paris")
    change = datetime(2027, 3, 28, 1, tzinfo=UTC)

    assert clock_changes(schedule, change, YEAR[1])[0].named == "2027-10-31 02:30"
    assert clock_changes(schedule, YEAR[0], change)[0].at == change
