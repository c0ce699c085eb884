"""The states of an operation and the moves between them: the one table of legal moves."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from secrets import token_urlsafe
from typing import NamedTuple
from uuid import UUID


class OperationState(StrEnum):
    """The state of an operation."""

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    DROPPED = "dropped"
    MISSED = "missed"
    HANDED_OVER = "handed_over"


_S = OperationState

# How often a lost operation is tried again.
MOST_LOSSES = 3


class AttemptKey(NamedTuple):
    """An attempt, with the random secret that its worker brought with its claim.

    Every write of a worker names all three: a database that lost commits may hand an attempt out
    twice. An attempt that nobody has claimed has no secret.
    """

    id: UUID
    attempt: int
    secret: str = ""

    @property
    def words(self) -> str:
        """What it is, in words, without the secret."""
        return f"operation {self.id} attempt {self.attempt}"


def new_secret() -> str:
    """Return a secret for a claim: 96 random bits, kept with each operation."""
    return token_urlsafe(12)


class Cause(StrEnum):
    """Why an operation was recorded, or runs again; policies depend on it."""

    SCHEDULE = "schedule"
    EVENT = "event"
    MANUAL = "manual"
    RETRY = "retry"
    BACKFILL = "backfill"


# Requested by occurrence. Such operations wait for one another, in order: no policy skips, drops or
# replaces them. That they begin late says nothing.
REQUESTED = frozenset({Cause.RETRY, Cause.BACKFILL})
# States that did not go well; the condition of the index operations_troubled.
TROUBLED = frozenset({OperationState.FAILED, OperationState.PARTIAL, OperationState.MISSED})
# Recorded by a tick.
TICKED = frozenset({Cause.SCHEDULE, Cause.EVENT})


@dataclass(frozen=True, slots=True)
class CausedBy:
    """The cause of an operation, and `triggerer`, a text for people."""

    cause: Cause
    triggerer: str
    backfill_id: UUID | None = None


def by_action(name: str, cause: Cause = Cause.SCHEDULE, after: str | None = None) -> CausedBy:
    """Return the cause of an operation recorded by a tick; `after` is the action that ended."""
    ended = "" if after is None else f' after "{after}"'
    return CausedBy(cause, f'Scheduled action "{name}"{ended}')


def by_person(cause: Cause, actor: str) -> CausedBy:
    """Return the cause of a manual run or a retry."""
    word = "Manual run" if cause is Cause.MANUAL else cause.capitalize()
    return CausedBy(cause, f"{word} by {actor}")


def by_backfill(id: UUID, actor: str) -> CausedBy:
    """Return the cause of an operation of a backfill, with the backfill's short id."""
    return CausedBy(Cause.BACKFILL, f"Backfill {str(id)[:8]} by {actor}", id)


UNSTARTED = frozenset({_S.PENDING, _S.QUEUED})
ENDED = frozenset(_S) - UNSTARTED - {_S.RUNNING}
# Several operations together have the first of these states that any of them has.
_WORST = (_S.FAILED, _S.MISSED, _S.PARTIAL, _S.RUNNING, _S.PENDING, _S.QUEUED, _S.SUCCESS)
# States in which a run ends.
OUTCOMES = frozenset({_S.SUCCESS, _S.PARTIAL, _S.FAILED, _S.CANCELLED})
DONE = frozenset({_S.SUCCESS, _S.PARTIAL})
# Ends that a command which requested the operation reports as done.
WENT_WELL = DONE | {_S.HANDED_OVER}
# Ends after which a person may let the same operation run.
RETRIABLE = frozenset({_S.FAILED, _S.PARTIAL, _S.CANCELLED, _S.MISSED})

UNSTARTED_MOVES = UNSTARTED | {
    _S.RUNNING,
    # It cannot be sent or read, or an attempt of it failed and no other may begin.
    _S.FAILED,
    _S.SKIPPED,
    _S.CANCELLED,
    _S.DROPPED,
    _S.HANDED_OVER,
}
LEGAL_MOVES: dict[OperationState, frozenset[OperationState]] = {
    _S.PENDING: UNSTARTED_MOVES,
    _S.QUEUED: UNSTARTED_MOVES,
    _S.RUNNING: frozenset({_S.PENDING, *OUTCOMES}),
    _S.FAILED: frozenset({_S.PENDING}),
    _S.PARTIAL: frozenset({_S.PENDING}),
    _S.CANCELLED: frozenset({_S.PENDING}),
    _S.MISSED: frozenset({_S.PENDING}),
    _S.SUCCESS: frozenset(),
    _S.SKIPPED: frozenset(),
    _S.DROPPED: frozenset(),
    # A following worker may still claim it: its message was on the way.
    _S.HANDED_OVER: frozenset({_S.QUEUED}),
}


class StepState(StrEnum):
    """The state of one step of an operation."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    # Left out, because a step that it builds on did only a part of its work.
    SKIPPED = "skipped"


def worst(states: Collection[str]) -> str:
    """Return the state that stands for several, such as the failed one."""
    return next((state for state in _WORST if state in states), min(states))
