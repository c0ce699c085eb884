"""Actions with the same plan share a decision only if it is that of each of them."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from scheduler.from_end import DecisionCache, decide_next
from tests.factories import make_plan, make_rule
from tests.ticks import HOUR

SEVEN = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
UIDS = [UUID(int=number**9) for number in range(1, 60)]
CRON = {"cron_rule": "0 * * * *", "timezone": "Europe/Paris"}
INTERVAL = {"every": "PT1H", "starting_at": "2026-01-01T00:00:00Z"}
WEEKLY = {"rrule": "FREQ=WEEKLY;BYDAY=MO", "at": "07:00", "timezone": "Europe/Paris"}


@pytest.mark.parametrize(
    ("rules", "is_shared"),
    [
        pytest.param([CRON], True, id="cron"),
        pytest.param([INTERVAL], True, id="interval"),
        pytest.param([WEEKLY], True, id="recurrence"),
        pytest.param([CRON, INTERVAL], True, id="several"),
        pytest.param([{**CRON, "jitter": "PT50M"}], False, id="jitter"),
        pytest.param([{**WEEKLY, "jitter": "PT50M"}], False, id="moved_recurrence"),
        pytest.param([INTERVAL, {**CRON, "jitter": "PT50M"}], False, id="one_of_several"),
        pytest.param([{"every": "PT1H", "from": "end"}], False, id="from_end"),
    ],
)
def test_each_action_gets_its_own_decision(
    rules: list[dict[str, object]], *, is_shared: bool
) -> None:
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
