"""The way of a run as the rows of a Gantt chart: each wait, each attempt and each step.

Names, instants and lengths are text of the page; only the bars are drawn.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise, zip_longest
from typing import Any

from models.operation import TICKED, UNSTARTED
from models.stored import instant_in
from services.operations import Attempt, Operation
from services.words import brief
from web.dashboard.texts import say, step_name

MOST_ATTEMPTS = 20
# In percent, so that a short one can be seen.
LEAST = 0.8
# Steps have the worker's clock, and attempts the database's.
SKEW = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run; one without an instant has not begun.

    `state` is empty for a wait; `left` and `width` are percent of the whole.
    """

    name: str
    since: datetime | None
    until: datetime | None
    state: str = ""
    error: str | None = None
    message: str | None = None
    is_step: bool = False
    left: float = 0
    width: float = 0

    @property
    def length(self) -> timedelta:
        """How long it took, or takes until now."""
        return self.until - self.since if self.since and self.until else timedelta()

    @property
    def took(self) -> str:
        """The same in words; nothing if it has not begun."""
        return brief(self.length.total_seconds()) if self.since else ""


def gantt(shown: Operation, now: datetime) -> tuple[Part, ...]:
    """Return the parts of a run in order."""
    parts = [*_waits(shown, now), *_work(shown, now)]
    begun = [one.since for one in parts if one.since]
    begin = min(begun, default=now)
    end = max((one.until for one in parts if one.until), default=now)
    whole = max(end - begin, timedelta(microseconds=1))
    return tuple(_placed(one, begin, whole) for one in parts)


def _placed(part: Part, begin: datetime, whole: timedelta) -> Part:
    if part.since is None:
        return part
    left = min(100 * ((part.since - begin) / whole), 100 - LEAST)
    width = max(LEAST, 100 * (part.length / whole))
    return replace(part, left=round(left, 2), width=round(width, 2))


def _waits(shown: Operation, now: datetime) -> Iterator[Part]:
    """Return the waits up to the first start; up to the end, or to now, if there was none."""
    begun = shown.attempts[0].started_at if shown.attempts else shown.started_at
    end = begun or shown.finished_at or now
    # Whoever asked for another one waited for no tick.
    due = shown.occurrence_at if shown.cause in TICKED else None
    named = (("due", due), ("recorded", shown.recorded_at), ("sent", shown.sent_at))
    known = [(name, at) for name, at in named if at is not None and at <= end]
    for (name, since), (_, until) in pairwise([*known, ("", end)]):
        yield Part(say(f"operation.stage_{name}"), since, max(since, until))


def _work(shown: Operation, now: datetime) -> Iterator[Part]:
    """Return each attempt, if there are several, with its steps and the wait for the next."""
    attempts = shown.attempts[-MOST_ATTEMPTS:]
    steps = list(_steps(shown, now))
    if len(attempts) < 2 and shown.state not in UNSTARTED:
        yield from steps or (_attempt(one, "operation.stage_started", now) for one in attempts)
        return
    for one, following in zip_longest(attempts, attempts[1:]):
        yield _attempt(one, "operation.attempt", now)
        until = now if following is None else following.started_at
        while steps and (following is None or _is_before(steps[0], until)):
            yield steps.pop(0)
        if following is not None or shown.state in UNSTARTED:
            name = say("operation.stage_again", number=one.attempt + 1)
            yield Part(name, one.finished_at or one.started_at, until)


def _is_before(step: Part, until: datetime) -> bool:
    return step.since is not None and step.since < until - SKEW


def _attempt(one: Attempt, name: str, now: datetime) -> Part:
    until = max(one.started_at, one.finished_at or now)
    return Part(say(name, number=one.attempt), one.started_at, until, one.state, one.error)


def _steps(shown: Operation, now: datetime) -> Iterator[Part]:
    """Return the steps; the only step of a task is the whole attempt."""
    if shown.task is None:
        yield from (_step(one, shown.finished_at or now) for one in shown.steps or ())


def _step(one: Mapping[str, Any], last: datetime) -> Part:
    since, until = (instant_in(one.get(key)) for key in ("started_at", "finished_at"))
    return Part(
        name=step_name(one["name"]),
        since=since,
        until=since and max(since, until or last),
        state=one["state"],
        error=one.get("error"),
        message=one.get("message"),
        is_step=True,
    )
