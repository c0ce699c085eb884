from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from apscheduler.triggers.calendarinterval import CalendarIntervalTrigger
from apscheduler.triggers.combining import AndTrigger, OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from minutebook.apscheduler_fires import is_asked, next_fires
from tests.ticks import HOUR

NOW = datetime(2026, 11, 26, 3, tzinfo=UTC)
DAILY = CronTrigger(hour=5, timezone="UTC")
OFTEN = IntervalTrigger(hours=6, start_date=NOW, timezone="UTC")
EACH_SECOND = IntervalTrigger(seconds=1, timezone="UTC")
EITHER = OrTrigger([DAILY, CronTrigger(hour=5, minute=30, timezone="UTC")])
CALENDAR = CalendarIntervalTrigger(days=3, hour=5, start_date="2026-11-20", timezone="UTC")
CHRISTMAS = DateTrigger(datetime(2026, 12, 24, tzinfo=UTC))


def clock(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}+00:00")


@pytest.mark.parametrize(
    ("trigger", "next_run_time", "grace_s", "instants"),
    [
        pytest.param(DAILY, None, 1, ["11-26T05:00", "11-27T05:00"], id="not_added_yet"),
        pytest.param(DAILY, 2 * HOUR, 1, ["11-26T05:00", "11-27T05:00"], id="cron"),
        pytest.param(DAILY, 26 * HOUR, 1, ["11-27T05:00", "11-28T05:00"], id="modified"),
        pytest.param(DAILY, -22 * HOUR, 1, ["11-26T05:00", "11-27T05:00"], id="too_late"),
        pytest.param(DAILY, -22 * HOUR, None, ["11-26T03:00", "11-26T05:00"], id="overdue"),
        pytest.param(DAILY, -22 * HOUR, 86_400, ["11-26T03:00", "11-26T05:00"], id="its_grace"),
        pytest.param(OFTEN, -50 * HOUR, 1, ["11-26T07:00", "11-26T13:00"], id="keeps_its_phase"),
        pytest.param(
            EACH_SECOND, -5_000 * HOUR, 1, ["11-26T03:00:01", "11-26T03:00:02"], id="each_s"
        ),
        pytest.param(CHRISTMAS, -HOUR, 1, [], id="date_too_late"),
        pytest.param(EITHER, None, 1, ["11-26T05:00", "11-26T05:30"], id="either"),
        pytest.param(CALENDAR, None, 1, ["11-26T05:00", "11-29T05:00"], id="calendar"),
    ],
)
def test_the_next_instants_are_those_of_its_trigger(
    trigger: Any, next_run_time: timedelta | None, grace_s: int | None, instants: list[str]
) -> None:
    first = None if next_run_time is None else NOW + next_run_time

    assert next_fires(trigger, first, NOW, grace_s)[:2] == [clock(text) for text in instants]


@pytest.mark.parametrize(
    "trigger",
    [
        pytest.param(AndTrigger([DAILY, OFTEN]), id="both"),
        pytest.param(OrTrigger([DAILY, AndTrigger([DAILY, OFTEN])]), id="both_within"),
        pytest.param(CronTrigger(hour=5, jitter=60, timezone="UTC"), id="drawn"),
        pytest.param(object(), id="of_a_user"),
    ],
)
def test_a_trigger_that_may_not_end_or_agree_is_not_asked(trigger: Any) -> None:
    assert not is_asked(trigger)
