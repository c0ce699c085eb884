"""The policy of an action: look-back, catch-up, overlap, time limit, retries."""

from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo, field_validator

from models.document import Document
from models.values import Queue, UtcInstant, format_instant, one_of, parse_list, parse_whole
from models.values.durations import format_span, parse_span

CatchUp = Literal["latest", "all"]
Overlap = Literal["skip", "queue", "allow", "replace"]
TIME_LIMIT = timedelta(hours=4)
BACKOFF = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 30))
LOOK_BACK = timedelta(minutes=5)
DUE_DATE_LOOK_BACK = timedelta(days=1)
# Of an interval one `every`, and no longer than this: operations are kept for longer by default.
INTERVAL_LOOK_BACK = timedelta(days=7)
# For a task of another application, which has its own limits: longer than any task.
NO_TIME_LIMIT = timedelta(days=36_500)
LONGEST_TIME_LIMIT = timedelta(days=7)
SHORTEST_LOOK_BACK, LONGEST_LOOK_BACK = timedelta(minutes=1), timedelta(days=366)
WEEK_S = 7 * 86_400
MOST_BACKOFFS = 100

AS_ISO = PlainSerializer(format_span, return_type=str)
LookBack = Annotated[
    timedelta,
    BeforeValidator(partial(parse_span, least=SHORTEST_LOOK_BACK, most=LONGEST_LOOK_BACK)),
    AS_ISO,
]
WithinAWeek = Annotated[
    timedelta, BeforeValidator(partial(parse_span, most=LONGEST_TIME_LIMIT)), AS_ISO
]


def _backoff(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError('write a list of durations: ["PT1M"]')
    spans = parse_list(value)
    if not spans:
        raise ValueError('is empty; write at least one pause: ["PT1M"]')
    if len(spans) > MOST_BACKOFFS:
        raise ValueError(f"has {len(spans)} pauses; write at most {MOST_BACKOFFS}")
    return spans


class RetryModel(Document):
    """The attempts of a failing operation, and the pauses between; the last one repeats."""

    example = '{"max_attempts": 3}'

    max_attempts: Annotated[int, BeforeValidator(partial(parse_whole, least=1, most=100))] = 1
    backoff: Annotated[tuple[WithinAWeek, ...], BeforeValidator(_backoff)] = BACKOFF


class PolicyModel(Document):
    """An action's policy with its defaults.

    `look_back` None means cron and events PT5M, interval one `every` up to P7D, due date P1D;
    `time_limit` None means PT4H, for intervals every/2, and none at all for `celery_task`.
    `expected` is the usual duration until a run has succeeded. Occurrences lie in [starts_at,
    ends_at); both are UTC.
    """

    example = '{"overlap": "skip"}'

    look_back: LookBack | None = None
    catch_up: Annotated[CatchUp, BeforeValidator(one_of("latest", "all"))] = "latest"
    overlap: Annotated[Overlap, BeforeValidator(one_of("skip", "queue", "allow", "replace"))] = (
        "skip"
    )
    max_waiting: Annotated[int, BeforeValidator(partial(parse_whole, least=1, most=1_000))] = 1
    time_limit: WithinAWeek | None = None
    expected: WithinAWeek | None = None
    retry: RetryModel = RetryModel()
    starts_at: UtcInstant | None = None
    ends_at: UtcInstant | None = None
    queue: Queue | None = None

    @field_validator("ends_at")
    @classmethod
    def _after_the_start(cls, ends_at: datetime, info: ValidationInfo) -> datetime:
        starts_at = info.data.get("starts_at")
        if starts_at is not None and ends_at <= starts_at:
            raise ValueError(f"is not after starts_at; write one after {format_instant(starts_at)}")
        return ends_at

    def is_within(self, at: datetime) -> bool:
        """Return whether an instant lies in [starts_at, ends_at)."""
        is_before = self.starts_at is not None and at < self.starts_at
        return not is_before and (self.ends_at is None or at < self.ends_at)

    def time_limit_of(
        self, shortest_every: timedelta | None, *, is_handed_over: bool = False
    ) -> timedelta:
        """Return the time limit; `shortest_every` is the interval's, None for other kinds.

        Without a limit in the policy, a task of the user's application has none.
        """
        if self.time_limit is not None:
            return self.time_limit
        if is_handed_over:
            return NO_TIME_LIMIT
        if shortest_every is None:
            return TIME_LIMIT
        half_s = shortest_every // timedelta(seconds=2)
        return timedelta(seconds=min(max(half_s, 1), WEEK_S))


def kept_too_short(look_back: timedelta, kept_for: timedelta) -> str:
    """Return the remedy for a retention that is shorter than a look-back.

    A pruned occurrence within a look-back could be decided again, and run a second time.
    """
    days = -(-look_back // timedelta(days=1))
    return (
        f'is longer than runs are kept; write "{format_span(kept_for)}" or less, or set'
        f" SCHED_RETENTION_OPERATIONS_DAYS to {days} or more"
    )
