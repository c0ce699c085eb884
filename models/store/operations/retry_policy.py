"""How attempts end that are cut short or fail; a failed one may be retried after its backoff."""

from typing import NamedTuple, Protocol

from minutebook import lease
from models.action.plan import Plan
from models.column_types import shown
from models.notices import TIME_BOX
from models.operation import OperationState, after_loss
from models.store.operations.end import Ending

CANCELLED = Ending(OperationState.CANCELLED, reason="cancelled")
TIME_LIMIT = Ending(OperationState.FAILED, error="time limit", reason="time limit", is_failure=True)
# How an attempt ends that is cut off, by why it should have stopped.
CUT_OFF = {lease.CANCELLED: CANCELLED, lease.TIME_LIMIT: TIME_LIMIT}
# A stop in time: the next operation goes on from the checkpoint.
STOPPED_IN_TIME = Ending(OperationState.PARTIAL, reason=TIME_BOX)


def lost(losses: int, why: str, step: str | None, may_repeat: bool, is_asked: bool) -> Ending:
    """Return how an attempt ends whose worker was lost while a step ran.

    `losses` counts earlier ones, `may_repeat` is of the step, `is_asked`: a cancel was requested.
    """
    state = after_loss(losses, repeatable=may_repeat, cancel_requested=is_asked)
    error = f"lost: {why}"
    if state is OperationState.FAILED and step is not None:
        error += f"; step {step} was running"
    return Ending(state, error=error, reason="lost", is_loss=True)


def lost_task(ending: Ending, tried: "Tried") -> Ending:
    """Return how a lost attempt of the user's own task ends, which may not begin again by itself.

    Where `lost` would fail it, its policy of retries decides.
    """
    if ending.state is not OperationState.FAILED:
        return ending
    again = failed(tried, ending.error or "", permanent=False)
    return ending if again.state is OperationState.FAILED else again


class Tried(Protocol):
    """An attempt, as a policy of retries looks at it."""

    @property
    def plan(self) -> Plan: ...
    @property
    def failures(self) -> int: ...


class TriedRow(NamedTuple):
    """An attempt that no worker of ours holds, read from its row."""

    plan: Plan
    failures: int


def failed(claimed: Tried, error: str, *, permanent: bool) -> Ending:
    """Return how a failed attempt ends: retried after its backoff, or failed for good."""
    retry, error = claimed.plan.policy.retry, shown(error)
    if permanent or claimed.failures + 1 >= retry.max_attempts:
        return Ending(OperationState.FAILED, error=error, is_failure=True)
    delay = retry.backoff[min(claimed.failures, len(retry.backoff) - 1)]
    return Ending(
        OperationState.PENDING,
        error=error,
        reason="retry",
        delay=delay,
        is_failure=True,
    )
