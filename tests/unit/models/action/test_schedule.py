"""Grids, single occurrences and bounds answer like a plain walk along their instants."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.action.schedule import Grid, Once, Schedule, Union, bounded
from tests.ticks import HOUR, MINUTE

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
