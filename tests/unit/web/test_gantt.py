"""The chart of a run: its waits, its attempts and its steps."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from services.operations import Attempt, Operation
from web.dashboard.drawing.gantt import Part, gantt

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
        state="success",
        attempts=(attempt(1, 4, 100, "success"),),
        steps=steps,
        finished_at=at(100),
    )

    last = gantt(done, at(200))[-1]

    assert last.width == 0.8
    assert last.left + last.width <= 100
