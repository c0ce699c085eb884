"""What is due, and what is missed, over (since, now]."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cron import Blackout
from models.action.plan import Plan
from models.action.policy import CatchUp
from models.action.rule import RuleModel
from models.action.schedule import Moved, Schedule
from models.events import Happened
from scheduler.decision import (
    MOST_MISSED_SHOWN,
    MOST_SENT,
    OVERTAKEN,
    TOO_LATE,
    Decision,
    EventWindow,
    Missed,
    Occurrence,
    decide,
    decide_events,
    event_window,
    occurrence_of,
)
from scheduler.occurrence import next_occurrence
from tests.factories import make_plan, make_rule
from tests.ticks import DAY, MINUTE, SECOND

UID = UUID("6f1d0c1e-0000-4000-8000-000000000001")
SEVEN = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)  # a Monday, 07:00 in Paris
WEEKLY = make_rule(cron_rule="0 7 * * 1", timezone="Europe/Paris")
DUE = make_rule(due_date="2026-11-23T06:00:00Z")
EVERY_MINUTE = make_rule(cron_rule="* * * * *")


def missed_in(decision: Decision) -> int:
    """Return how many occurrences are missed, those of the span included."""
    return len(decision.missed) + (decision.missed_span.count if decision.missed_span else 0)


def test_five_ticks_decide_an_occurrence_once() -> None:
    watermark = SEVEN - MINUTE
    found: list[datetime] = []
    for minute in range(5):
        decision = decide(make_plan(WEEKLY), UID, watermark, SEVEN + minute * MINUTE)
        found += decision.due_at
        watermark = decision.watermark

    assert found == [SEVEN]


def test_a_watermark_never_moves_back() -> None:
    decision = decide(make_plan(EVERY_MINUTE), UID, SEVEN, SEVEN - MINUTE)

    assert (decision.due_at, decision.watermark) == ((), SEVEN)
    assert decision.next_occurrence_at == SEVEN + MINUTE


def test_a_late_occurrence_is_missed_not_sent() -> None:
    decision = decide(make_plan(WEEKLY), UID, SEVEN - DAY, SEVEN + 6 * MINUTE)

    assert decision.due_at == ()
    assert decision.missed == (Missed(Occurrence(SEVEN), TOO_LATE),)
    assert decision.missed_span is None


def test_latest_sends_one_and_names_the_overtaken() -> None:
    decision = decide(make_plan(EVERY_MINUTE), UID, SEVEN - 3 * MINUTE, SEVEN)

    assert decision.due_at == (SEVEN,)
    assert decision.missed == (
        Missed(Occurrence(SEVEN - 2 * MINUTE), OVERTAKEN),
        Missed(Occurrence(SEVEN - MINUTE), OVERTAKEN),
    )


def test_of_several_rules_the_latest_occurrence_is_due() -> None:
    earlier = make_rule(cron_rule="57 6 * * 1", timezone="Europe/Paris")
    for rules in ((earlier, WEEKLY), (WEEKLY, earlier)):
        decision = decide(make_plan(*rules), UID, SEVEN - 5 * MINUTE, SEVEN)

        assert decision.due_at == (SEVEN,)
        assert decision.missed == (Missed(Occurrence(SEVEN - 3 * MINUTE), OVERTAKEN),)


def test_all_sends_each_in_the_window() -> None:
    decision = decide(make_plan(EVERY_MINUTE, catch_up="all"), UID, SEVEN - 9 * MINUTE, SEVEN)

    assert decision.due_at == tuple(SEVEN - n * MINUTE for n in range(4, -1, -1))
    assert decision.missed == tuple(
        Missed(Occurrence(SEVEN - n * MINUTE), TOO_LATE) for n in range(8, 4, -1)
    )


def test_a_long_outage_is_ten_operations_and_one_span() -> None:
    since = SEVEN - 30 * DAY
    decision = decide(make_plan(EVERY_MINUTE), UID, since, SEVEN)

    assert decision.due_at == (SEVEN,)
    assert len(decision.missed) == MOST_MISSED_SHOWN
    span = decision.missed_span
    assert span is not None
    assert (span.first_at, span.last_at) == (since + MINUTE, SEVEN - 11 * MINUTE)
    assert span.count == 30 * 24 * 60 - 1 - MOST_MISSED_SHOWN
    assert span.reason == TOO_LATE


def test_all_stops_at_a_thousand_and_goes_on() -> None:
    plan = make_plan(EVERY_MINUTE, catch_up="all", look_back=7 * DAY)
    watermark = since = SEVEN - timedelta(minutes=2_500)
    sent: list[datetime] = []
    sizes = []
    while watermark < SEVEN:
        decision = decide(plan, UID, watermark, SEVEN)
        sizes.append(len(decision.due))
        sent += decision.due_at
        watermark = decision.watermark
        assert decision.missed == ()

    assert sizes == [MOST_SENT, MOST_SENT, 500]
    assert sent == [since + n * MINUTE for n in range(1, 2_501)]


def test_a_long_window_is_not_listed_beyond_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[datetime] = []

    class Counted(Moved):
        def next(self, after: datetime) -> datetime | None:
            at = super().next(after)
            found.extend([at] if at is not None else [])
            return at

        def between(self, since: datetime, until: datetime) -> list[datetime]:
            instants = super().between(since, until)
            found.extend(instants)
            return instants

    def counted(plan: Plan, uid: UUID) -> list[Schedule]:
        return [Counted(rule.schedule(uid)) for rule in plan.rules]

    monkeypatch.setattr(Plan, "schedules", counted)
    hourly = make_rule(every="PT1H", starting_at="2026-08-25T06:00:00Z")
    plan = make_plan(EVERY_MINUTE, hourly, catch_up="all", look_back=90 * DAY)
    decision = decide(plan, UID, SEVEN - 60 * DAY, SEVEN)

    assert decision.due_at == tuple(SEVEN - 60 * DAY + n * MINUTE for n in range(1, MOST_SENT + 1))
    assert len(found) < MOST_SENT + 50


def test_a_due_date_is_looked_back_a_day_for() -> None:
    plan = make_plan(DUE)

    assert decide(plan, UID, SEVEN - DAY, SEVEN + 23 * 60 * MINUTE).due_at == (SEVEN,)
    late = decide(plan, UID, SEVEN - DAY, SEVEN + DAY)
    assert (late.due, late.missed) == ((), (Missed(Occurrence(SEVEN), TOO_LATE),))
    assert late.next_occurrence_at is None


def test_a_paused_action_has_no_occurrence_and_no_next() -> None:
    decision = decide(make_plan(WEEKLY, active=False), UID, SEVEN - DAY, SEVEN)

    assert (decision.due, decision.missed, decision.next_occurrence_at) == ((), (), None)
    assert decision.watermark == SEVEN
    assert next_occurrence(make_plan(WEEKLY, active=False), UID, SEVEN) is None


RULES = st.one_of(
    st.builds(
        make_rule,
        cron_rule=st.sampled_from(
            ["* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "5,50 1-3 * * *"]
        ),
        timezone=st.sampled_from(["UTC", "Europe/Paris", "Australia/Lord_Howe", "America/Havana"]),
    ),
    st.builds(
        make_rule,
        every=st.sampled_from(["PT3M", "PT7M", "PT45M"]),
        starting_at=st.just("2026-10-24T00:00:00Z"),
        jitter=st.sampled_from(["PT0S", "PT3M"]),
    ),
    st.builds(
        make_rule,
        solar=st.sampled_from(["dawn_civil", "sunrise", "solar_noon"]),
        lat=st.sampled_from([-33.9, 0.0, 51.5]),
        # From Japan to Finland the sun rises in that night.
        lon=st.integers(25, 140).map(float),
    ),
)
LOOK_BACKS = st.sampled_from([None, 5 * MINUTE, 90 * MINUTE])
NIGHT = datetime(2026, 10, 24, 22, 0, tzinfo=UTC)  # clocks go back in Europe at 01:00 UTC


def _decided(plan: Plan, ticks: list[int]) -> list[Decision]:
    watermark, decisions = NIGHT, []
    for second in ticks:
        decision = decide(plan, UID, watermark, NIGHT + timedelta(seconds=second))
        watermark = decision.watermark
        decisions.append(decision)
    return decisions


@given(
    rules=st.lists(RULES, min_size=1, max_size=2),
    look_back=LOOK_BACKS,
    catch_up=st.sampled_from(["latest", "all"]),
    ticks=st.lists(st.integers(1, 6 * 3600), min_size=1, max_size=8, unique=True).map(sorted),
)
def test_every_occurrence_is_due_or_missed_exactly_once_however_the_night_is_split(
    rules: list[RuleModel], look_back: timedelta | None, catch_up: CatchUp, ticks: list[int]
) -> None:
    plan = make_plan(*rules, catch_up=catch_up, look_back=look_back)
    end = NIGHT + timedelta(seconds=ticks[-1])
    expected = sorted({at for rule in rules for at in rule.schedule(UID).between(NIGHT, end)})

    decisions = _decided(plan, ticks)

    due = [at for decision in decisions for at in decision.due_at]
    missed = [one.at for decision in decisions for one in decision.missed]
    in_spans = sum(d.missed_span.count for d in decisions if d.missed_span)
    assert len(due) + len(missed) + in_spans == len(expected)
    assert set(due) | set(missed) <= set(expected)
    assert len({*due, *missed}) == len(due) + len(missed)
    assert due == sorted(due)
    for decision, following in pairwise(decisions):
        assert decision.watermark <= following.watermark
        assert all(at > decision.watermark for at in following.due_at)


@given(rules=st.lists(RULES, min_size=1, max_size=2), look_back=LOOK_BACKS)
def test_ticks_within_the_look_back_lose_nothing(
    rules: list[RuleModel], look_back: timedelta | None
) -> None:
    plan = make_plan(*rules, catch_up="all", look_back=look_back)
    end = NIGHT + timedelta(hours=5)
    expected = sorted({at for rule in rules for at in rule.schedule(UID).between(NIGHT, end)})

    decisions = _decided(plan, [n * 60 for n in range(1, 301)])

    assert [at for decision in decisions for at in decision.due_at] == expected
    assert all(decision.missed == () for decision in decisions)


@given(rules=st.lists(RULES, min_size=1, max_size=2), minutes=st.integers(0, 400))
def test_next_occurrence_is_what_a_full_scan_finds(rules: list[RuleModel], minutes: int) -> None:
    plan = make_plan(*rules)
    now = NIGHT + minutes * MINUTE
    scan = [at for rule in rules for at in rule.schedule(UID).between(now, now + 3 * DAY)]

    assert decide(plan, UID, NIGHT, now).next_occurrence_at == min(scan)


CLOSED = {"timezone": "Europe/Paris", "except": [{"calendar": "closed"}]}


@given(
    rule=st.sampled_from(
        [
            {"cron_rule": "30 2 * * *"},
            {"cron_rule": "*/50 * * * *"},
            {"every": "PT7H", "starting_at": "2026-01-01T00:00Z"},
            {"rrule": "FREQ=DAILY", "at": "00:00", "starting_at": "2026-01-01"},
        ]
    ),
    catch_up=st.sampled_from(["latest", "all"]),
    minutes=st.integers(0, 3 * 1440),
    days=st.sets(st.integers(0, 4)),
)
def test_what_a_calendar_leaves_out_is_filed_and_passed_over(
    rule: dict[str, str], catch_up: CatchUp, minutes: int, days: set[int]
) -> None:
    calendars = {"closed": [f"{NIGHT + day * DAY:%Y-%m-%d}" for day in days]}
    named, now = make_rule(**rule, **CLOSED), NIGHT + minutes * MINUTE
    bare = make_rule(**rule, timezone="Europe/Paris", **{"except": ["2000-01-01"]})
    plan = make_plan(named, catch_up=catch_up).with_calendars(calendars)
    paris = ZoneInfo("Europe/Paris")
    left = [
        at
        for at in bare.schedule(UID).between(NIGHT, now)
        if str(at.astimezone(paris).date()) not in calendars["closed"]
    ]

    found = decide(plan, UID, NIGHT, now)

    assert found.next_occurrence_at == min(bare.schedule(UID).between(now, now + 3 * DAY))
    assert len(found.due) + missed_in(found) == len(left)
    assert {*found.due_at, *(one.at for one in found.missed)} <= {*left}


@pytest.mark.parametrize("catch_up", ["latest", "all"])
def test_a_calendar_that_leaves_nothing_is_not_searched_beyond_now(
    catch_up: CatchUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(make_rule(cron_rule="0 7 25 10 *", **CLOSED), catch_up=catch_up)
    closed = plan.with_calendars({"closed": ["10-25"]})
    looked_up: list[datetime] = []
    at = Blackout.at

    def seen(blackout: Blackout, instant: datetime) -> object:
        looked_up.append(instant)
        return at(blackout, instant)

    monkeypatch.setattr(Blackout, "at", seen)
    found = decide(closed, UID, NIGHT, NIGHT + 3 * DAY)

    assert (found.due, missed_in(found)) == ((), 0)
    assert len(looked_up) < 10


def test_an_event_outside_the_window_or_the_bounds_is_no_occurrence() -> None:
    window = EventWindow(SEVEN - 5 * MINUTE, SEVEN, SEVEN - 5 * MINUTE)
    plan = make_plan(make_rule(on="order.paid"))
    bounded = plan.with_policy(starts_at=SEVEN - 3 * MINUTE, ends_at=SEVEN - MINUTE)

    def due(of: Plan) -> list[int]:
        events = {minute: happened(minute, minute) for minute in range(-1, 7)}
        found = {n: occurrence_of((of, UID), one, one.at, window) for n, one in events.items()}
        return [minute for minute, one in found.items() if one is not None]

    assert (due(plan), due(bounded)) == ([0, 1, 2, 3, 4], [2, 3])


def happened(minute: int, number: int) -> Happened:
    at = SEVEN - minute * MINUTE
    return Happened(0, at, f"event {number}", "ann", active=True, activated_at=SEVEN - DAY)


@given(
    minutes=st.lists(st.integers(0, 40), max_size=40),
    first=st.integers(0, 40),
    late=st.integers(0, 20),
)
def test_events_are_decided_alike_in_any_parts(minutes: list[int], first: int, late: int) -> None:
    window = EventWindow(SEVEN - 30 * MINUTE, SEVEN, SEVEN - late * MINUTE)
    plan = make_plan(make_rule(on="order.paid"))
    read = [happened(minute, number) for number, minute in enumerate(minutes)]
    found = [occurrence_of((plan, UID), one, one.at, window) for one in read]
    known = [one for one in found if one is not None]

    whole = decide_events(known, window)
    parts = decide_events(known[:first], window) + decide_events(known[first:], window)

    assert parts == whole
    assert len(known) == sum(minute < 30 for minute in minutes)
    assert len(whole.due) == sum(minute < late for minute in minutes if minute < 30)
    assert len(whole.due) + missed_in(whole) == len(known)
    assert [one.at for one in whole.missed] == sorted(
        one.at for one in known if one.at <= window.late_until
    )[-MOST_MISSED_SHOWN:]
    assert all(one.id_of(UID) == one.id for one in known)


def test_after_a_downtime_only_the_look_back_is_in_time() -> None:
    plan = make_plan(make_rule(on="order.paid"))

    never, regular, down = (
        event_window(plan, SEVEN - DAY, SEVEN, decided)
        for decided in (None, SEVEN - 2 * MINUTE, SEVEN - 2 * MINUTE - SECOND)
    )

    assert never == EventWindow(SEVEN - DAY, SEVEN, SEVEN - 5 * MINUTE)
    assert regular == EventWindow(SEVEN - 7 * MINUTE, SEVEN, SEVEN - 7 * MINUTE)
    assert down == EventWindow(SEVEN - 7 * MINUTE - SECOND, SEVEN, SEVEN - 5 * MINUTE)
