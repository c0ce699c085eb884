"""The drawings of the dashboard: the timeline, the chart of a run, bars of runs, and a year."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest

from services.actions.page import Day, Year
from services.operations import Attempt, Operation
from services.operations.last_runs import LastRun
from services.overview.figures import Hour
from services.overview.timeline import SCALES, Timeline
from web.dashboard.drawing import timeline
from web.dashboard.drawing.bars import HIGH, STEP, STUB, USUAL, Bars, bars, hours
from web.dashboard.drawing.gantt import Part, gantt
from web.dashboard.drawing.year import MOST_LINKS, DrawnYear, drawn_year
from web.dashboard.drawing.year import STEP as DAY_STEP

NOW = datetime(2026, 11, 22, 20, 10, tzinfo=UTC)


def drawn(scale: tuple[timedelta, timedelta] = SCALES[-1]) -> Timeline:
    back, span = scale
    return Timeline(
        since=NOW - back,
        now=NOW,
        until=NOW + back / 2,
        span_s=span.total_seconds(),
        lanes=(),
        outages=(),
    )


def test_a_zone_with_half_an_hour_has_labels_too() -> None:
    hours = timeline(drawn(), "Asia/Kolkata").hours

    assert [one.text for one in hours][1:3] == ["06:00", "09:00"]


def test_an_hour_at_an_edge_of_the_timeline_has_a_line_without_a_cut_off_label() -> None:
    hours = timeline(drawn(), "Europe/Paris").hours

    texts = [one.text for one in hours]
    assert texts[0] == "Sun 00:00"
    assert texts[-2:] == ["06:00", ""]
    assert hours[-1].x > hours[-2].x


@pytest.mark.parametrize("scale", SCALES, ids=lambda one: str(one[0]))
def test_every_scale_has_labels_that_stand_apart(scale: tuple[timedelta, timedelta]) -> None:
    places = [one.x for one in timeline(drawn(scale), "Asia/Kolkata").hours]

    assert 5 <= len(places) <= 13
    assert min(b - a for a, b in pairwise(places)) > 7


DUE = datetime(2027, 1, 4, 12, tzinfo=UTC)
ID = uuid4()


def at(seconds: float) -> datetime:
    return DUE + timedelta(seconds=seconds)


def operation(**known: Any) -> Operation:
    plain = {
        "occurrence_at": DUE,
        "recorded_at": at(1),
        "sent_at": at(2),
        "started_at": None,
        "finished_at": None,
        "cause": "schedule",
        "state": "queued",
        "steps": None,
        "attempts": (),
        "task": None,
    }
    return Operation.model_construct(**{**plain, **known})


def attempt(number: int, since: float, until: float | None, state: str) -> Attempt:
    ends = {"started_at": at(since), "finished_at": None if until is None else at(until)}
    return Attempt(operation_id=ID, attempt=number, state=state, worker="w", error=None, **ends)


def step(name: str, state: str, since: float, until: float | None = None) -> dict[str, str]:
    ended = {} if until is None else {"finished_at": at(until).isoformat()}
    return {"name": name, "state": state, "started_at": at(since).isoformat(), **ended}


def told(parts: tuple[Part, ...]) -> list[tuple[str, str, str]]:
    return [(one.name, one.state, one.took) for one in parts]


def test_each_step_stands_behind_the_waits_before_it() -> None:
    ran = attempt(1, 4, 10, "failed")
    steps = [step("refresh", "success", 4, 8), step("own_step", "failed", 8, 10)]
    done = operation(state="failed", attempts=(ran,), steps=steps, finished_at=at(10))

    bars = gantt(done, at(99))

    assert told(bars) == [
        ("waited for the tick", "", "1.0 s"),
        ("waited to be sent", "", "1.0 s"),
        ("waited for a worker", "", "2.0 s"),
        ("Read data from their sources", "success", "4.0 s"),
        ("own step", "failed", "2.0 s"),
    ]
    assert [(one.left, one.width) for one in bars[-2:]] == [(40, 40), (80, 20)]


def test_a_run_that_waits_has_a_bar_up_to_now() -> None:
    bars = gantt(operation(), at(62))

    assert told(bars)[-1] == ("waited for a worker", "", "1 min")


def test_attempts_stand_before_their_steps_with_the_wait_between() -> None:
    """The worker's clock is a little behind the database's."""
    attempts = (attempt(1, 3, 5, "retry"), attempt(2, 65, 70, "success"))
    steps = [step("refresh", "success", 2.99, 4), step("own_step", "success", 64.9, 70)]
    done = operation(state="success", attempts=attempts, steps=steps, finished_at=at(70))

    bars = gantt(done, at(99))

    assert told(bars)[3:] == [
        ("attempt 1", "retry", "2.0 s"),
        ("Read data from their sources", "success", "1.0 s"),
        ("waited for attempt 2", "", "1 min"),
        ("attempt 2", "success", "5.0 s"),
        ("own step", "success", "5.1 s"),
    ]


def test_an_attempt_that_was_put_back_is_followed_by_the_wait_for_the_next() -> None:
    waits = operation(state="pending", attempts=(attempt(1, 3, 5, "retry"),))

    assert told(gantt(waits, at(35)))[3:] == [
        ("attempt 1", "retry", "2.0 s"),
        ("waited for attempt 2", "", "30.0 s"),
    ]


def test_an_instant_that_a_person_chose_is_no_wait_for_the_tick() -> None:
    chosen = operation(occurrence_at=DUE - timedelta(days=300), cause="backfill")

    bars = gantt(chosen, at(3))

    assert bars[0].name == "waited to be sent"


def test_a_running_step_lasts_until_now_and_what_waits_has_no_bar() -> None:
    waiting = {"name": "x", "state": "waiting", "started_at": "soon"}
    steps = [step("own_step", "running", 4), waiting]
    runs = operation(state="running", attempts=(attempt(1, 4, None, "running"),), steps=steps)

    *_, running, waits = gantt(runs, at(9))

    assert told((running, waits)) == [("own step", "running", "5.0 s"), ("x", "waiting", "")]
    assert (waits.since, waits.width) == (None, 0)


def test_a_short_bar_at_the_end_can_be_seen() -> None:
    steps = [step("own_step", "success", 99.999, 100)]
    done = operation(
        state="success", attempts=(attempt(1, 4, 100, "success"),), steps=steps, finished_at=at(100)
    )

    last = gantt(done, at(200))[-1]

    assert last.width == 0.8
    assert last.left + last.width <= 100


def run(state: str = "success", **known: Any) -> LastRun:
    plain = {"at": DUE, "took_s": None, "why": None}
    return LastRun.model_validate({"id": ID, "state": state, **plain, **known})


def drawn_bars(*runs: LastRun) -> Bars:
    return bars(runs, "Europe/Paris")


def test_the_newest_run_stands_at_the_right_edge() -> None:
    found = drawn_bars(run(at=DUE - timedelta(hours=1)), run())

    assert [one.x for one in found.bars] == [found.width - 2 * STEP, found.width - STEP]


def test_a_bar_is_as_high_as_its_run_took_long() -> None:
    short, long = drawn_bars(run(took_s=1.0), run(took_s=60.0)).bars

    assert short.height < USUAL < long.height == HIGH


@pytest.mark.parametrize(
    ("state", "height"),
    [
        pytest.param("failed", HIGH, id="failed_is_whole"),
        pytest.param("skipped", STUB, id="skipped_is_a_stub"),
        pytest.param("handed_over", USUAL, id="of_unknown_duration"),
    ],
)
def test_a_state_has_its_height_whatever_its_run_took(state: str, height: int) -> None:
    first, _ = drawn_bars(run(state), run(took_s=60.0)).bars

    assert first.height == height


def test_a_row_says_how_many_runs_are_in_each_state() -> None:
    assert drawn_bars(run(), run("failed"), run()).summary == "1 failed, 2 success"
    assert drawn_bars().summary == ""


def test_a_bar_says_when_how_long_and_why_on_the_clock_of_the_zone() -> None:
    (one,) = drawn_bars(run("failed", took_s=2.0, why="no such host")).bars

    assert one.tip == "failed, Mon 2027-01-04 13:00 +01:00, 2.0 s: no such host"


def test_one_failure_beside_thousands_of_runs_is_seen() -> None:
    runs, failed, *_ = hours([Hour(since=DUE, runs=9_000, failed=1)], "UTC").bars

    assert (runs.height, failed.height) == (HIGH, 2)
    assert failed.tip == "Mon 2027-01-04 12:00 +00:00: 9,000 runs, 1 failed"


# In Tokyo, at the end of a day in UTC.
EVENING = datetime(2027, 1, 4, 23, 30, tzinfo=UTC)
TODAY = date(2027, 1, 5)


def drawn_days(states: dict[date, str]) -> DrawnYear:
    days = {at: Day(state, {state: 1}) for at, state in states.items()}
    return drawn_year(Year(EVENING, "Asia/Tokyo", days), "/operations?app=shop")


def test_today_stands_in_the_last_week_and_the_first_day_in_the_first() -> None:
    year = drawn_days({TODAY: "failed", date(2026, 1, 6): "success"})

    assert year.days == {
        "bad": f"M{year.width - DAY_STEP} {DAY_STEP}h9v9h-9z",
        "good": f"M0 {DAY_STEP}h9v9h-9z",
    }
    assert year.summary == "1 failed, 1 success"


def test_a_day_in_trouble_leads_to_its_runs() -> None:
    (one,) = drawn_days({TODAY: "failed", date(2027, 1, 4): "success"}).troubles

    assert one.tip == "Tue 2027-01-05: 1 failed"
    assert one.href == "/operations?app=shop&since=2027-01-05T00:00:00&until=2027-01-06T00:00:00"


def test_a_year_of_failures_links_its_newest_days() -> None:
    year = drawn_days({TODAY - timedelta(days=ago): "failed" for ago in range(300)})

    assert len(year.troubles) == MOST_LINKS
    assert year.troubles[-1].tip.startswith("Tue 2027-01-05")
