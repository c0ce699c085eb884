"""Draw the way of a run as a Gantt chart: a bar for each wait, each attempt and each step.

The names and the lengths are text of the page; only the bars are drawn.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise, zip_longest
from typing import Any

from models.operation import TICKED, UNSTARTED
from models.stored import instant_in
from models.values.zones import in_zone
from services.operations import Attempt, Operation
from services.words import brief
from web.dashboard.rendering import tone
from web.dashboard.texts import say, step_name

MOST_ATTEMPTS = 20
# In percent, so that a short one can be seen.
LEAST = 0.8
# Steps have the worker's clock, and attempts the database's.
SKEW = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a run: `left` and `width` are percent of the whole; `state` is empty for a wait."""

    name: str
    state: str
    tone: str
    is_step: bool
    left: float
    width: float
    span: str
    tip: str


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    since: datetime
    until: datetime
    state: str = ""
    is_step: bool = False


def gantt(shown: Operation, now: datetime, zone: str) -> tuple[Bar, ...]:
    """Return the parts of a run in order, with instants on the clock of a zone."""
    parts = [*_waits(shown, now), *_work(shown, now)]
    if not parts:
        return ()
    begin = min(one.since for one in parts)
    whole = max(max(one.until for one in parts) - begin, timedelta(microseconds=1))
    return tuple(_bar(one, begin, whole, zone) for one in parts)


def _bar(part: _Part, begin: datetime, whole: timedelta, zone: str) -> Bar:
    span = max(timedelta(), part.until - part.since)
    left = min(100 * ((part.since - begin) / whole), 100 - LEAST)
    return Bar(
        name=part.name,
        state=part.state,
        tone=tone(part.state) if part.state else "wait",
        is_step=part.is_step,
        left=round(left, 2),
        width=round(max(LEAST, 100 * (span / whole)), 2),
        span=brief(span.total_seconds()),
        tip=f"{part.name}: {in_zone(part.since, zone)}, {brief(span.total_seconds())}",
    )


def _waits(shown: Operation, now: datetime) -> Iterator[_Part]:
    """Return the waits up to the first start; up to the end, or to now, if there was none."""
    begun = shown.attempts[0].started_at if shown.attempts else shown.started_at
    end = begun or shown.finished_at or now
    # Whoever asked for another one waited for no tick.
    due = shown.occurrence_at if shown.cause in TICKED else None
    named = (("due", due), ("recorded", shown.recorded_at), ("sent", shown.sent_at))
    known = [(name, at) for name, at in named if at is not None and at <= end]
    for (name, since), (_, until) in pairwise([*known, ("", end)]):
        yield _Part(say(f"operation.stage_{name}"), since, max(since, until))


def _work(shown: Operation, now: datetime) -> Iterator[_Part]:
    """Return each attempt, if there are several, with its steps and the wait for the next."""
    attempts = shown.attempts[-MOST_ATTEMPTS:]
    steps = list(_steps(shown, now))
    if len(attempts) < 2 and shown.state not in UNSTARTED:
        yield from steps or (_attempt(one, "operation.stage_started", now) for one in attempts)
        return
    for one, following in zip_longest(attempts, attempts[1:]):
        yield _attempt(one, "operation.attempt", now)
        until = now if following is None else following.started_at
        while steps and (following is None or steps[0].since < until - SKEW):
            yield steps.pop(0)
        if following is not None or shown.state in UNSTARTED:
            name = say("operation.stage_again", number=one.attempt + 1)
            yield _Part(name, one.finished_at or one.started_at, until)


def _attempt(one: Attempt, name: str, now: datetime) -> _Part:
    until = max(one.started_at, one.finished_at or now)
    return _Part(say(name, number=one.attempt), one.started_at, until, one.state)


def _steps(shown: Operation, now: datetime) -> Iterator[_Part]:
    """Return the steps that began; the only step of a task is the whole attempt."""
    if shown.task is None and isinstance(shown.steps, list):
        for one in shown.steps:
            if isinstance(one, Mapping) and (since := instant_in(one.get("started_at"))):
                yield _step(one, since, shown.finished_at or now)


def _step(one: Mapping[str, Any], since: datetime, last: datetime) -> _Part:
    until = instant_in(one.get("finished_at")) or last
    name, state = step_name(str(one.get("name"))), str(one.get("state"))
    return _Part(name, since, max(since, until), state, is_step=True)
