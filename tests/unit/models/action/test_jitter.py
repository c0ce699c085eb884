"""Jitter moves the instants that a rule names: by one offset, or by one for each."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.action.schedule import BEGINNING, END, Drawn, Moved, Schedule
from models.fingerprint import drawn_offset, jitter_offset
from models.values.durations import parse_span
from tests.factories import make_plan, make_rule
from tests.ticks import DAY, HOUR, SECOND
from tests.unit.models.action.test_schedule import answers_like

UID = UUID("6f1d0c1e-0000-4000-8000-000000000001")
START = datetime(2027, 3, 27, tzinfo=UTC)
DAILY = {"rrule": "FREQ=DAILY;INTERVAL=2", "starting_at": "2026-12-31"}
SUN = {"solar": "sunset", "lat": 48.85, "lon": 2.35}
RULES = [
    pytest.param({"cron_rule": "*/10 * * * *", "jitter": "PT5M"}, id="cron"),
    pytest.param({"cron_rule": "30 1,2 * * *", "jitter": "PT2H"}, id="longer_than_a_gap"),
    pytest.param({"cron_rule": "17 * * * *", "jitter": "PT3H"}, id="longer_than_each_gap"),
    pytest.param(
        {"cron_rule": "0 9 * * *", "except": [{"days": "sat"}], "jitter": "P2D"}, id="except"
    ),
    pytest.param({"every": "PT17M", "jitter": "PT17M"}, id="interval"),
    pytest.param({**SUN, "jitter": "PT1H"}, id="sun"),
    pytest.param({**DAILY, "at": ["02:30", "09:00"], "jitter": "PT10H"}, id="calendar"),
]
EACH = pytest.mark.parametrize("each", [False, True], ids=["fixed", "each"])


def schedule_of(keys: dict[str, object], each: bool) -> Schedule:
    zone = {} if "every" in keys or "solar" in keys else {"timezone": "Europe/Paris"}
    begins = {"starting_at": "2027-03-01T00:00:00Z"} if "every" in keys else {}
    rule = make_rule(**{**keys, **zone, **begins, "jitter_each": each})
    return rule.schedule(UID)


@EACH
@pytest.mark.parametrize("keys", RULES)
@given(since_s=st.integers(0, 4 * 86_400), length_s=st.integers(0, 86_400))
def test_each_answer_agrees_with_the_list_of_all(
    keys: dict[str, object], each: bool, since_s: int, length_s: int
) -> None:
    schedule = schedule_of(keys, each)
    since = START + since_s * SECOND
    until = since + length_s * SECOND

    answers_like(one_by_one(schedule, until), schedule, since, until)


def one_by_one(schedule: Schedule, until: datetime) -> list[datetime]:
    """Return the occurrences of some days up to `until`, each asked for after the one before."""
    found, at = [], START - 3 * DAY
    while (following := schedule.next(at)) is not None and following <= until:
        found.append(following)
        at = following
    return found


@EACH
@pytest.mark.parametrize("keys", RULES)
def test_an_occurrence_lies_within_the_jitter_of_what_its_rule_names(
    keys: dict[str, object], each: bool
) -> None:
    moved = schedule_of(keys, each)
    assert isinstance(moved, Moved | Drawn)
    named = moved.inner.between(START, START + 5 * DAY)

    if isinstance(moved, Moved):
        offset = jitter_offset(UID, parse_span(keys["jitter"]))
        moved_too = moved.between(START + offset, START + 5 * DAY + offset)
        assert [at + offset for at in named] == moved_too
        return
    for at, following in zip(named, [*named[1:], END], strict=True):
        its = moved.next(at - SECOND)
        assert its is not None
        assert at <= its < min(at + moved.spread, following)


def test_offsets_of_one_action_differ_and_of_one_instant_agree() -> None:
    instants = [START + n * HOUR for n in range(100)]

    offsets = [drawn_offset(UID, at, HOUR) for at in instants]

    assert offsets == [drawn_offset(UID, at, HOUR) for at in instants]
    assert len(set(offsets)) > 90
    assert all(timedelta(0) <= one < HOUR for one in offsets)
    assert drawn_offset(UUID(int=1), START, HOUR) != offsets[0]


def test_an_exception_leaves_out_what_the_rule_names_not_where_it_moves() -> None:
    sundays = {"days": "sun"}
    rule = make_rule(cron_rule="0 23 * * *", **{"except": [sundays]}, jitter="PT4H")
    assert jitter_offset(UID, 4 * HOUR) > HOUR

    found = rule.schedule(UID).between(START, START + 7 * DAY)

    weekdays = [(at - jitter_offset(UID, 4 * HOUR)).strftime("%a") for at in found]
    assert weekdays == ["Fri", "Sat", "Mon", "Tue", "Wed", "Thu"]
    assert found[1].strftime("%a") == "Sun"


@EACH
def test_a_jitter_asks_no_rule_about_other_years_than_it_knows(each: bool) -> None:
    schedule = schedule_of({"cron_rule": "0 0 * * *", "jitter": "P3D"}, each)

    assert schedule.last(BEGINNING, BEGINNING + HOUR) is None
    assert schedule.next(BEGINNING) is not None
    assert schedule.count(BEGINNING, BEGINNING + 30 * DAY) > 20
    assert schedule.last(END - 9 * DAY, END - SECOND) is not None


def test_a_day_of_each_minute_is_counted_without_a_list() -> None:
    schedule = schedule_of({"cron_rule": "* * * * *", "jitter": "PT1M"}, each=True)

    assert schedule.count(BEGINNING, datetime(2190, 1, 1, tzinfo=UTC)) > 100_000_000


def test_the_words_say_how_the_offset_comes() -> None:
    fixed = make_rule(cron_rule="0 9 * * *", jitter="PT5M")
    drawn = make_rule(**SUN, jitter="PT90S", jitter_each=True)

    assert fixed.jitter_words == ", plus up to 5 minutes, fixed for this action"
    assert drawn.jitter_words == ", plus up to 1 minute 30 seconds, drawn for each run"
    assert make_rule(**SUN).jitter_words == ""


def test_a_plan_without_jitter_has_the_instants_that_the_rule_names() -> None:
    plan = make_plan(make_rule(cron_rule="0 9 * * *", jitter="PT5M", jitter_each=True))

    found = plan.without_jitter().schedule(UID).between(START, START + 2 * DAY)

    assert [at.hour for at in found] == [9, 9]
