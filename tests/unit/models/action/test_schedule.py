"""Grids, due dates, bounds and jitter answer like a plain walk along their instants."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.action.schedule import (
    BEGINNING,
    END,
    Drawn,
    Grid,
    Moved,
    Once,
    Schedule,
    Union,
    bounded,
)
from models.fingerprint import drawn_offset, jitter_offset
from models.values.durations import parse_span
from tests.factories import make_plan, make_rule
from tests.ticks import DAY, HOUR, MINUTE, SECOND

ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
EARLY, LATE = ANCHOR - HOUR, ANCHOR + 20 * HOUR


def answers_like(
    instants: list[datetime], schedule: Schedule, since: datetime, until: datetime
) -> None:
    inside = [at for at in instants if since < at <= until]
    assert schedule.between(since, until) == inside
    assert schedule.count(since, until) == len(inside)
    assert schedule.last(since, until) == (inside[-1] if inside else None)
    following, later = schedule.next(since), [at for at in instants if at > since]
    assert following == later[0] if later else following is None or following > until


@given(
    every_s=st.integers(60, 7200),
    since_s=st.integers(-20_000, 20_000),
    length_s=st.integers(0, 20_000),
)
def test_a_grid_is_anchor_plus_n_every(every_s: int, since_s: int, length_s: int) -> None:
    every = timedelta(seconds=every_s)
    instants = [ANCHOR + n * every for n in range(800)]
    since = ANCHOR + timedelta(seconds=since_s)

    answers_like(instants, Grid(ANCHOR, every), since, since + timedelta(seconds=length_s))


def test_a_due_date_occurs_once() -> None:
    once = Once(ANCHOR)

    answers_like([ANCHOR], once, ANCHOR - MINUTE, ANCHOR)
    assert once.next(ANCHOR) is None
    assert once.last(ANCHOR, ANCHOR + HOUR) is None


@pytest.mark.parametrize("hours", [(0, 1), (1, 2), (2, 2), (None, 1), (1, None)])
def test_bounds_keep_the_start_and_leave_the_end_out(hours: tuple[int | None, int | None]) -> None:
    starts_at, ends_at = (None if hour is None else ANCHOR + hour * HOUR for hour in hours)
    kept = [
        at
        for at in (ANCHOR + n * 10 * MINUTE for n in range(19))
        if (starts_at is None or at >= starts_at) and (ends_at is None or at < ends_at)
    ]

    found = bounded(Grid(ANCHOR, 10 * MINUTE), starts_at, ends_at)

    answers_like(kept, found, EARLY, ANCHOR + 3 * HOUR)


def test_a_grid_ends_with_the_calendar() -> None:
    assert Grid(ANCHOR, timedelta(days=36_000)).next(datetime(9990, 1, 1, tzinfo=UTC)) is None


@given(
    grids=st.lists(st.tuples(st.integers(1, 90), st.integers(0, 60)), max_size=3),
    once_at=st.integers(-10, 200),
    since_at=st.integers(-10, 200),
    length=st.integers(0, 200),
)
def test_a_union_names_each_instant_once(
    grids: list[tuple[int, int]], once_at: int, since_at: int, length: int
) -> None:
    """In minutes; a union with an empty list of grids is a due date alone."""
    schedules: list[Schedule] = [Once(ANCHOR + once_at * MINUTE)]
    schedules += [Grid(ANCHOR + begin * MINUTE, every * MINUTE) for every, begin in grids]
    since = ANCHOR + since_at * MINUTE
    until = since + length * MINUTE
    instants = sorted({at for one in schedules for at in one.between(EARLY, LATE)})

    answers_like(instants, Union(schedules), since, until)
    answers_like([], Union([]), since, until)


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
