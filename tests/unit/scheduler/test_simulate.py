"""The tick's decisions on a virtual clock."""

from collections import Counter
from datetime import UTC, datetime
from random import Random

import pytest

from models.action.document import plan_of
from scheduler.decision import decide
from scheduler.simulate import Simulated, SimulatedOutcome, Timetable, busiest, simulate
from tests.factories import make_document
from tests.ticks import DAY, HOUR, MINUTE, SECOND
from tests.unit.models.action.minimal import parse

MONDAY = datetime(2027, 1, 4, tzinfo=UTC)
NO_OUTAGE = Timetable()


def action(name: str = "one", **changes: object) -> Simulated:
    document = make_document(name=name, **changes)
    parsed = parse(document, default_zone="UTC", created_at=MONDAY)
    return Simulated.named(name, plan_of(parsed))


def hourly(name: str = "one", **changes: object) -> Simulated:
    return action(name, when={"cron_rule": "0 * * * *", "timezone": "UTC"}, **changes)


def shown(fates: list[SimulatedOutcome]) -> list[tuple[str, str]]:
    return [(f"{one.first_at:%d %H:%M}", one.fate) for one in fates]


def test_a_run_of_an_interval_from_the_end_ends_when_it_is_sent() -> None:
    down = Timetable(((MONDAY + 30 * MINUTE, MONDAY + 2 * HOUR),))
    one = action(when={"every": "PT17M", "from": "end", "starting_at": "2027-01-04T00:05:00Z"})

    fates = list(simulate([one], MONDAY, MONDAY + 2 * HOUR + 40 * MINUTE, down))

    assert shown(fates) == [
        ("04 00:05", "sent"),
        ("04 00:22", "sent"),
        ("04 00:39", "missed"),
        ("04 02:17", "sent"),
        ("04 02:34", "sent"),
    ]


def test_an_outage_shows_what_is_looked_back_for_and_what_is_missed() -> None:
    down = Timetable(((MONDAY + HOUR, MONDAY + 3 * HOUR + 4 * MINUTE),))

    fates = list(simulate([hourly()], MONDAY, MONDAY + 4 * HOUR, down))

    assert shown(fates) == [
        ("04 01:00", "missed"),
        ("04 02:00", "missed"),
        ("04 03:00", "sent"),
        ("04 04:00", "sent"),
    ]
    assert fates[0].reason == "too late"
    assert fates[2].decided_at == MONDAY + 3 * HOUR + 4 * MINUTE


def test_an_outage_until_the_end_leaves_the_rest_undecided() -> None:
    down = Timetable(((MONDAY + HOUR, MONDAY + 2 * DAY),))

    fates = list(simulate([hourly()], MONDAY, MONDAY + DAY, down))

    assert [(one.fate, one.count) for one in fates] == [("undecided", 24)]
    assert (fates[0].first_at, fates[0].last_at) == (MONDAY + HOUR, MONDAY + DAY)


def test_seconds_are_decided_by_the_next_tick_of_the_timetable() -> None:
    due = action(when={"due_date": "2027-01-04T00:00:17Z"})

    for tick_s, decided_s in ((60, 60), (10, 20)):
        (fate,) = simulate([due], MONDAY, MONDAY + HOUR, Timetable((), tick_s * SECOND))

        assert fate.decided_at == MONDAY + decided_s * SECOND


def test_the_busiest_minutes_come_first() -> None:
    actions = [hourly(), hourly("two"), action("three", when={"cron_rule": "0 2 * * *"})]

    fates = list(simulate(actions, MONDAY, MONDAY + 3 * HOUR, NO_OUTAGE))

    assert busiest(fates, 2) == [(MONDAY + 2 * HOUR, 3), (MONDAY + HOUR, 2)]


@pytest.mark.parametrize("seed", range(8))
def test_the_simulation_equals_ticks_at_every_minute(seed: int) -> None:
    random = Random(seed)
    actions = [
        hourly(policy={"catch_up": random.choice(["latest", "all"]), "look_back": "PT40M"}),
        action("two", when={"every": "PT17M", "jitter": "PT5M"}),
        action("three", when=[{"cron_rule": "*/20 * * * *"}, {"cron_rule": "5 3 * * *"}]),
    ]
    until = MONDAY + DAY
    begins = [MONDAY + MINUTE * random.randrange(1, 1_400) for _ in range(6)]
    down = tuple((at, at + MINUTE * random.randrange(1, 100)) for at in begins)

    found: Counter[object] = Counter()
    for one in simulate(actions, MONDAY, until, Timetable(down)):
        assert one.count == 1 or one.fate != "sent"
        found[one.action.name, one.fate] += one.count

    expected: Counter[object] = Counter()
    for each in actions:
        watermark = MONDAY
        for minute in range(1, 24 * 60 + 1):
            now = MONDAY + minute * MINUTE
            if any(begin <= now < end for begin, end in down):
                continue
            decision = decide(each.plan, each.uid, watermark, now)
            watermark = decision.watermark
            expected[each.name, "sent"] += len(decision.due)
            span = decision.missed_span
            expected[each.name, "missed"] += len(decision.missed) + (span.count if span else 0)
        rest = decide(each.plan, each.uid, watermark, until)
        expected[each.name, "undecided"] += len(rest.due) + len(rest.missed)
    assert +expected == found


def test_what_one_tick_leaves_to_the_next_at_the_end_is_sent_too() -> None:
    policy = {"catch_up": "all", "look_back": "P2D"}
    every_minute = action(when={"cron_rule": "* * * * *"}, policy=policy)
    until = MONDAY + 1_500 * MINUTE
    down = Timetable(((MONDAY, until),))

    fates = list(simulate([every_minute], MONDAY, until, down))

    assert Counter(one.fate for one in fates) == {"sent": 1_500}
