"""Which occurrences the clock gives an action, and which decisions and outages hold them."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from models.store.actions.downtime import Span
from scheduler.from_end import DecisionCache, decide_next
from scheduler.occurrence import (
    get_cron_last_occurrence,
    get_scheduled_action_last_occurrence,
    neighbours,
    next_occurrences,
)
from tests.factories import make_plan, make_rule
from tests.ticks import DAY, HOUR, MINUTE, SECOND

UID = UUID("6f1d0c1e-0000-4000-8000-000000000001")
SEVEN = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)  # a Monday, 07:00 in Paris
WEEKLY = make_rule(cron_rule="0 7 * * 1", timezone="Europe/Paris")
DUE = make_rule(due_date="2026-11-23T06:00:00Z")
UIDS = [UUID(int=number**9) for number in range(1, 60)]
CRON = {"cron_rule": "0 * * * *", "timezone": "Europe/Paris"}
INTERVAL = {"every": "PT1H", "starting_at": "2026-01-01T00:00:00Z"}
MONDAYS = {"rrule": "FREQ=WEEKLY;BYDAY=MO", "at": "07:00", "timezone": "Europe/Paris"}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(SEVEN, SEVEN, id="at_the_minute"),
        pytest.param(SEVEN + 30 * SECOND, SEVEN, id="half_a_minute_late"),
        pytest.param(SEVEN + 5 * MINUTE - SECOND, SEVEN, id="just_inside"),
        pytest.param(SEVEN + 5 * MINUTE, None, id="the_window_is_open_at_its_start"),
        pytest.param(SEVEN - SECOND, None, id="not_yet"),
        pytest.param(SEVEN + DAY, None, id="not_on_tuesday"),
    ],
)
def test_the_last_five_minutes_are_looked_back_over(
    now: datetime, expected: datetime | None
) -> None:
    assert get_cron_last_occurrence("0 7 * * 1", "Europe/Paris", now) == expected
    assert get_scheduled_action_last_occurrence(make_plan(WEEKLY), now) == expected


def test_summer_time_moves_the_utc_instant() -> None:
    july = datetime(2026, 7, 6, 5, 0, 20, tzinfo=UTC)

    assert get_cron_last_occurrence("0 7 * * 1", "Europe/Paris", july) == july - 20 * SECOND


def test_a_longer_look_back_may_be_asked_for() -> None:
    late = SEVEN + 2 * HOUR

    assert get_scheduled_action_last_occurrence(make_plan(WEEKLY), late, 3 * HOUR) == SEVEN
    assert get_scheduled_action_last_occurrence(make_plan(WEEKLY, active=False), SEVEN) is None


def test_the_next_five_are_ascending_and_after_now() -> None:
    weeks = [SEVEN + n * 7 * DAY for n in range(1, 6)]

    assert next_occurrences(make_plan(WEEKLY), UID, SEVEN, 5) == weeks
    assert next_occurrences(make_plan(DUE), UID, SEVEN - DAY, 5) == [SEVEN]


def test_the_last_occurrence_may_be_the_instant_itself_or_years_ago() -> None:
    plan = make_plan(WEEKLY, make_rule(due_date="2026-11-23T06:01:00Z"), active=False)

    assert neighbours(plan, UID, SEVEN + SECOND)[0] == SEVEN
    assert neighbours(plan, UID, SEVEN + MINUTE + SECOND)[0] == SEVEN + MINUTE
    assert neighbours(plan, UID, SEVEN)[0] == SEVEN - 7 * DAY
    assert neighbours(make_plan(DUE), UID, SEVEN)[0] is None


@pytest.mark.parametrize(
    ("rules", "is_shared"),
    [
        pytest.param([CRON], True, id="cron"),
        pytest.param([INTERVAL], True, id="interval"),
        pytest.param([MONDAYS], True, id="recurrence"),
        pytest.param([CRON, INTERVAL], True, id="several"),
        pytest.param([{**CRON, "jitter": "PT50M"}], False, id="jitter"),
        pytest.param([INTERVAL, {**CRON, "jitter": "PT50M"}], False, id="one_of_several"),
        pytest.param([{"every": "PT1H", "from": "end"}], False, id="from_end"),
    ],
)
def test_each_action_gets_a_decision(rules: list[dict[str, object]], *, is_shared: bool) -> None:
    plan = make_plan(*(make_rule(**one) for one in rules))
    once = DecisionCache(SEVEN)
    since = SEVEN - 3 * HOUR

    found = [once.of(plan, uid, since, {}) for uid in UIDS]

    assert found == [decide_next((plan, uid), since, SEVEN, {}) for uid in UIDS]
    assert (len({id(one) for one in found}) == 1) is is_shared


def test_another_watermark_is_another_decision() -> None:
    plan, once = make_plan(make_rule(**CRON)), DecisionCache(SEVEN)
    sinces = [SEVEN - HOUR, SEVEN, SEVEN - 2 * HOUR, SEVEN - HOUR]

    found = [once.of(plan, UIDS[0], since, {}) for since in sinces]

    assert found == [decide_next((plan, UIDS[0]), since, SEVEN, {}) for since in sinces]
    assert found[0] is found[3]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        pytest.param(0, 1, False, id="the_last_tick_before_it_decided_its_begin"),
        pytest.param(0.1, 2, True, id="its_end_is_in_it"),
        pytest.param(1, 2.1, False, id="beyond_its_end"),
    ],
)
def test_an_outage_has_an_open_begin(first: float, last: float, expected: bool) -> None:
    outage = Span(SEVEN, SEVEN + 2 * HOUR, SEVEN)

    assert outage.covers(SEVEN + first * HOUR, SEVEN + last * HOUR) is expected
