"""Recurrence rules against python-dateutil by the wall clock, and at clock changes."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr

from cron import InvalidRule, WallClock, clock_changes
from cron.recurrence import read_recurrence
from cron.recurrent_days import RecurrentMinutes
from runtime.clock import use_pinned_zones
from tests.tables import table
from tests.unit.cron.test_day_modifiers import ZONES
from tests.work import lines_run

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
RULES = 200
FIRST, LAST = datetime(2020, 1, 1), datetime(2031, 1, 1)  # noqa: DTZ001 - wall clocks


def some(random_: random.Random, values: Sequence[object], most: int = 3) -> str:
    return ",".join(str(random_.choice(values)) for _ in range(random_.randint(1, most)))


def parts(random_: random.Random) -> Iterator[str]:
    """Yield the parts of a random rule that RFC 5545 allows together."""
    frequency = random_.choice(("DAILY", "WEEKLY", "MONTHLY", "YEARLY"))
    numbered = [f"{n}{day}" for n in (1, 2, 3, 5, -1, -2) for day in WEEKDAYS]
    days = numbered if frequency in {"MONTHLY", "YEARLY"} and random_.random() < 0.5 else WEEKDAYS
    yield f"FREQ={frequency}"
    for chance, text, frequencies in (
        (0.6, f"INTERVAL={random_.choice((2, 3, 4, 5, 7, 13))}", "DWMY"),
        (0.3, f"BYMONTH={some(random_, range(1, 13))}", "DWMY"),
        (0.5, f"BYDAY={some(random_, days, 4)}", "DWMY"),
        (0.3, f"BYMONTHDAY={some(random_, [*range(1, 32), -1, -2, -15])}", "DMY"),
        (0.15, f"BYYEARDAY={some(random_, (1, 60, 100, 366, -1, -366))}", "Y"),
        (0.15, f"BYWEEKNO={some(random_, (1, 20, 52, 53, -1))}", "Y"),
        (0.3, f"BYSETPOS={some(random_, (1, 2, 3, -1, -2))}", "MY"),
        (0.3, f"WKST={random_.choice(WEEKDAYS)}", "DWMY"),
    ):
        if frequency[0] in frequencies and random_.random() < chance:
            yield text


def instants(walls: Iterator[datetime], zone: str) -> list[datetime]:
    """Return when a clock shows local times: the end of a gap, the first of two."""
    own = ZoneInfo(zone)
    found: list[datetime] = []
    for wall in walls:
        at = wall.replace(tzinfo=own).astimezone(UTC)
        if at.astimezone(own).replace(tzinfo=None) != wall:
            # The offset before the gap gives an instant after it; the gap ends where they differ.
            low, high = at - timedelta(hours=3), at
            before = low.astimezone(own).utcoffset()
            while high - low > timedelta(seconds=1):
                middle = low + (high - low) // 2
                same = middle.astimezone(own).utcoffset() == before
                low, high = (middle, high) if same else (low, middle)
            at = high.replace(microsecond=0)
        if at not in found[-1:]:
            found.append(at)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_occurrences_are_those_of_dateutil_at_the_times_that_the_clock_shows(seed: int) -> None:
    use_pinned_zones()
    random_, compared = random.Random(seed), 0
    while compared < RULES // 4:
        text = ";".join(parts(random_))
        first = FIRST + timedelta(days=random_.randrange(1500))
        minute = random_.choice((0, 90, 150, 539, 1439, random_.randrange(1440)))
        zone = random_.choice(ZONES)
        try:
            rule = read_recurrence(text)
            minutes = RecurrentMinutes(rule, [minute], first.date())
            minutes.check()
        except InvalidRule:
            continue
        compared += 1
        theirs = rrulestr(text, dtstart=first + timedelta(minutes=minute), cache=False)
        expected = instants(takewhile(lambda wall: wall < LAST, theirs), zone)
        since = first.replace(tzinfo=ZoneInfo(zone))
        until = LAST.replace(tzinfo=ZoneInfo(zone)) - timedelta(seconds=1)
        schedule = WallClock(minutes, zone)

        where = (text, first, minute, zone)
        assert (where, expected) == (where, schedule.between(since - timedelta(seconds=1), until))
        assert schedule.count(since - timedelta(seconds=1), until) == len(expected)
        later = [at for at in expected if at > since]
        assert schedule.last(since, until) == (later[-1] if later else None)


def test_clock_changes_are_those_of_a_fixed_time() -> None:
    minutes = RecurrentMinutes(read_recurrence("FREQ=DAILY"), [150], date(2027, 1, 1))
    year = (datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))

    found = clock_changes(WallClock(minutes, "Europe/Paris"), *year)

    assert [
        (one.named, one.is_gap, [f"{at:%m-%dT%H:%M}Z" for at in one.runs_at]) for one in found
    ] == [
        ("2027-03-28 02:30", True, ["03-28T01:00Z"]),
        ("2027-10-31 02:30", False, ["10-31T00:30Z"]),
    ]


def test_a_rule_is_read_in_any_case_and_with_its_name() -> None:
    assert read_recurrence("rrule: freq=daily; interval=2;").text == "FREQ=DAILY;INTERVAL=2"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        *table(__file__, "a_wrong_rule_is_refused_with_what_to_write"),
        (f"FREQ=DAILY;BYDAY={','.join(['MO'] * 200)}", "write a shorter one"),
        (b"FREQ=DAILY", "is not text but bytes"),
    ],
)
def test_a_wrong_rule_is_refused_with_what_to_write(text: str, remedy: str) -> None:
    with pytest.raises(InvalidRule) as refused:
        read_recurrence(text)

    assert remedy in str(refused.value)


@pytest.mark.parametrize("text", table(__file__, "a_rule_that_never_fires_is_refused_at_once"))
def test_a_rule_that_never_fires_is_refused_at_once(text: str) -> None:
    minutes = RecurrentMinutes(read_recurrence(text), [540], date(2026, 11, 25))

    def refuse() -> None:
        with pytest.raises(InvalidRule, match="names no day from 2026-11-25 on"):
            minutes.check()

    assert lines_run(refuse) < 250_000


def test_the_cost_of_an_occurrence_is_that_of_a_cron_rule() -> None:
    minutes = RecurrentMinutes(read_recurrence("FREQ=DAILY;INTERVAL=3"), [540], date(1971, 1, 1))
    schedule, now = WallClock(minutes, "Europe/Paris"), datetime(2026, 11, 25, tzinfo=UTC)
    schedule.next(now)

    assert lines_run(lambda: schedule.next(now)) < 40
