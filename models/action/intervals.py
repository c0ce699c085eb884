"""Intervals: on a fixed grid, or counted from the end of the last operation."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, ClassVar, Self
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, field_validator

from models.action.policy import AS_ISO, INTERVAL_LOOK_BACK
from models.action.rule import (
    LONGEST_INTERVAL,
    Begun,
    Excepted,
    Jittered,
    Spread,
)
from models.action.schedule import ONE_SECOND, Grid, Once, Schedule
from models.parsing import reading_of
from models.values import (
    UtcInstant,
    Zone,
    format_instant,
    instant_or_dash,
    one_of,
    parse_instant,
)
from models.values.delays import rounded_up
from models.values.durations import format_span, parse_span, span_in_words

GRID, END = "grid", "end"
# How often an interval from the end is looked at while its next occurrence is not known: before
# retention removes what has ended.
LOOKED_AT = timedelta(days=1)
DAY = timedelta(days=1)
A_MONTH = timedelta(days=30)


Every = Annotated[
    timedelta,
    BeforeValidator(partial(parse_span, most=LONGEST_INTERVAL, seconds_allowed=True)),
    AS_ISO,
]
From = Annotated[str, BeforeValidator(one_of(GRID, END))]


class RepeatingModel(Jittered):
    """Due again and again, `every` apart."""

    timezone: Zone | None = None
    every: Every
    from_: From = Field(GRID, alias="from")

    @field_validator("starting_at", mode="before", check_fields=False)
    @classmethod
    def _in_own_zone(cls, value: object, info: ValidationInfo) -> object:
        zone = info.data.get("timezone")
        return value if zone is None else format_instant(parse_instant(value, zone))

    @field_validator("every")
    @classmethod
    def _a_tick_at_least(cls, every: timedelta, info: ValidationInfo) -> timedelta:
        tick = reading_of(info).tick
        if every < tick:
            raise ValueError(
                f'is shorter than a tick; write "{format_span(tick)}" or more, or set '
                "SCHED_SCHEDULER_TICK_SECONDS to a divisor of 60 that is no longer"
            )
        if every < info.data.get("jitter", every):
            raise ValueError("is shorter than `jitter`; write a shorter jitter")
        return every

    @property
    def look_back(self) -> timedelta:
        """One interval, up to a week: operations are kept for longer, unless that is changed."""
        return min(self.every, INTERVAL_LOOK_BACK)


class IntervalModel(Excepted, Begun, RepeatingModel):
    """Due at starting_at + n·every, on a fixed grid.

    Without `starting_at` the grid begins one interval after the action's creation.
    """

    starting_at: UtcInstant | None = None
    tolerance: Spread | None = None

    def after_creation(self, created_at: datetime) -> datetime:
        """Return the first occurrence of a rule without `starting_at`: one interval later."""
        return created_at + self.every

    @field_validator("tolerance")
    @classmethod
    def _under_one_interval(cls, tolerance: timedelta, info: ValidationInfo) -> timedelta:
        every = info.data.get("every")
        if every is not None and tolerance >= every:
            raise ValueError(f'is not shorter than `every`; write less than "{format_span(every)}"')
        return tolerance

    def every_occurrence(self, uid: UUID) -> Schedule:  # noqa: ARG002 - the same for all actions
        """Return the grid."""
        return Grid(self.begins_at, self.every)

    def words(self, zone: str) -> str:  # noqa: ARG002 - its instants are UTC
        """Return the interval and where its grid begins."""
        words = span_in_words(self.every)
        rhythm = words.removeprefix("1 ") if words.count(" ") == 1 else words
        return f"every {rhythm}, counted from {instant_or_dash(self.begins_at)}"

    def warnings(self, zone: str) -> Iterator[str]:
        """Yield a warning about whole days whose local time moves when the clocks change."""
        return _drift(self.every, self.begins_at, self.timezone or zone)


class FromEndModel(RepeatingModel):
    """Due `every` after the action's last operation ended, however it ended.

    Its rule names at most one instant, which is known while no operation is unfinished: by
    `counted`. Without one of its own, the first is due when the action is stored.
    """

    is_from_end: ClassVar[bool] = True

    starting_at: UtcInstant | None = None
    _due_at: datetime | None = PrivateAttr(None)

    def from_last_end(self, begins: datetime, ended_at: datetime | None) -> Self:
        """Return the rule with the occurrence that it names after `begins` and its last end.

        What was due before, while the action was paused or no rule of this kind, is due at once.
        """
        bounds = [begins + ONE_SECOND]
        bounds += [] if ended_at is None else [ended_at + self.every]
        bounds += [] if self.starting_at is None else [self.starting_at]
        found = self.model_copy()
        found._due_at = rounded_up(max(bounds))
        return found

    def every_occurrence(self, uid: UUID) -> Schedule:  # noqa: ARG002 - the same for all actions
        """Return the next occurrence, if it is known."""
        return Once(self._due_at)

    def words(self, zone: str) -> str:  # noqa: ARG002 - its instants are UTC
        """Return the interval, and the first occurrence if it has one of its own."""
        first = "" if self.starting_at is None else f", first {instant_or_dash(self.starting_at)}"
        return f"{span_in_words(self.every)} after the last run ended{first}"


def _drift(every: timedelta, starting_at: datetime, zone: str) -> Iterator[str]:
    """Yield a warning about an interval of whole days in a zone whose clocks change.

    It shows the recurrence rule that keeps the local time.
    """
    local = starting_at.astimezone(ZoneInfo(zone))
    changes = {(local + month * A_MONTH).utcoffset() for month in range(12)}
    if every % DAY or len(changes) < 2:
        return
    same = {
        "rrule": f"FREQ=DAILY;INTERVAL={every // DAY}",
        "at": f"{local:%H:%M}",
        "timezone": zone,
        "starting_at": f"{local:%Y-%m-%d}",
    }
    yield (
        f'when.every "{format_span(every)}": keeps exact hours, so its local time moves by the '
        f"clock changes of {zone}; write {json.dumps(same)} to keep the local time"
    )
