"""How long a job may run, and how it ends if its worker fails or does not stop in time."""

from dataclasses import replace
from datetime import timedelta

from models.store.operations.finish import Ending
from models.store.operations.jobs import NOTHING, Held
from models.store.operations.retry_policy import CANCELLED, TIME_LIMIT, failed
from runtime.sections.processes import WorkerSettings


def stopped(held: Held) -> Ending | None:
    """Return how a job ends whose worker should stop, None if it may go on."""
    if held.cancelled_for is not None:
        return CANCELLED
    return TIME_LIMIT if held.ran_for >= held.plan.time_limit else None


def time_left(held: Held, settings: WorkerSettings) -> timedelta:
    """Return how long a job may still take; not negative."""
    left = held.plan.time_limit + timedelta(seconds=settings.soft_limit_s) - held.ran_for
    if held.cancelled_for is not None:
        left = min(left, timedelta(seconds=settings.cancel_grace_s) - held.cancelled_for)
    return max(NOTHING, left)


def overrun(held: Held, settings: WorkerSettings) -> Ending | None:
    """Return how a job ends whose worker did not stop in time, None if it may go on."""
    return None if time_left(held, settings) > NOTHING else stopped(held)


def failure(held: Held, error: str, *, permanent: bool) -> Ending:
    """Return the end of a job that failed: retried, failed for good, or stopped as told."""
    ending = stopped(held)
    if ending is not None:
        return replace(ending, error=error)
    return failed(held, error, permanent=permanent)
