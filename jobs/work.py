"""A job in the hands of a worker: taken, kept, reported, given back."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from models.job import JOB
from models.operation import OperationState
from models.store.operations import one_step, running
from models.store.operations.admission import TAKEN, KeptBack, NotClaimed, Recorded
from models.store.operations.claims import Claim, Wanted, claim, lock_unstarted, start_all
from models.store.operations.finish import Ended, Ending, end
from models.store.operations.jobs import Held
from models.store.operations.retry_policy import CANCELLED, TIME_LIMIT, failed
from models.store.operations.running import Story
from runtime.database import DATABASE_AWAY
from runtime.db_retry import start
from runtime.sections import AlertSettings
from runtime.sections.processes import WorkerSettings

logger = logging.getLogger("minutehand.jobs")

NOTHING = timedelta(0)
SUCCEEDED = OperationState.SUCCESS
NO_JOB = Ending(OperationState.FAILED, error="its action names no job", is_failure=True)
GIVEN_BACK = Ending(OperationState.PENDING, reason="given back: its worker went away")


@dataclass(frozen=True, slots=True)
class Standing:
    """What a worker learns when it renews its lease: whether to go on, or why and when to stop."""

    stop: str | None
    time_left: timedelta


def take(
    engine: sa.Engine, its: tuple[UUID, int], worker: str, alerts: AlertSettings
) -> Claim | KeptBack:
    """Start an attempt (id, number) of a job for a worker, or apply what keeps it from starting."""
    step = one_step.begun(JOB, repeatable=True)

    def begin(_document: str, _steps: list[dict[str, Any]]) -> dict[str, Any]:
        return one_step.columns_of(step)

    def claimed() -> Claim | KeptBack:
        with engine.begin() as connection:
            found = claim(connection, *its, worker, begin, alerts=alerts)
            if isinstance(found, Claim) and found.plan.job is None:
                return KeptBack(NotClaimed.BROKEN, end(connection, *its, NO_JOB, alerts=alerts))
            return found

    return start(its[0], claimed, TAKEN)


@dataclass(frozen=True, slots=True)
class Taken:
    """The jobs that were started together, and those that `take` decides about, by operation."""

    started: list[Recorded] = field(default_factory=list)
    undecided: set[UUID] = field(default_factory=set)


def take_all(engine: sa.Engine, wanted: Sequence[Wanted]) -> Taken:
    """Start attempts of jobs, in one transaction, if no rule has to look at anything else.

    If one of them makes the transaction fail, all are undecided. A job that another process is
    claiming is neither started nor undecided.
    """
    try:
        with engine.begin() as connection:
            return _start_free(connection, wanted)
    except sa.exc.IntegrityError:
        # Another operation of an action started at the same moment.
        pass
    except DATABASE_AWAY:
        raise
    except Exception:  # caused by one job; the caller then takes each alone
        logger.exception("%d jobs could not be taken together", len(wanted))
    return Taken(undecided={one.id for one in wanted})


def _start_free(connection: sa.Connection, wanted: Sequence[Wanted]) -> Taken:
    found = {one.id: one for one in lock_unstarted(connection, wanted)}
    free: dict[str, Recorded] = {}
    for one in found.values():
        if one.is_free and one.plan.job is not None:
            free.setdefault(one.overlap_key or str(one.id), one)
    ids = {one.id for one in free.values()}
    step = one_step.begun(JOB, repeatable=True)
    starts = [one for one in wanted if one.id in ids]
    started = start_all(connection, starts, one_step.columns_of(step)) if starts else set()
    return Taken([found[id] for id in started], found.keys() - started)


def keep(
    connection: sa.Connection, held: Held, progress: Mapping[str, Any], settings: WorkerSettings
) -> Standing:
    """Renew the lease of a job, and write its progress; raises LeaseLost."""
    its = (held.id, held.attempt)
    if progress:
        running.write(connection, *its, Story(one_step.progress_columns(progress)))
    else:
        running.beat(connection, *its)
    return standing(held, settings)


def standing(held: Held, settings: WorkerSettings) -> Standing:
    """Return whether the worker of a job should stop, and how long it may still take."""
    left = held.plan.time_limit + timedelta(seconds=settings.soft_limit_s) - held.ran_for
    if held.cancelled_for is not None:
        grace = timedelta(seconds=settings.cancel_grace_s) - held.cancelled_for
        return Standing("cancelled", max(NOTHING, min(left, grace)))
    is_over = held.ran_for >= held.plan.time_limit
    return Standing("time limit" if is_over else None, max(NOTHING, left))


def overrun(held: Held, settings: WorkerSettings) -> Ending | None:
    """Return how a job ends whose worker did not stop in time, None if it may go on."""
    now = standing(held, settings)
    if now.stop is None or now.time_left > NOTHING:
        return None
    return TIME_LIMIT if held.cancelled_for is None else CANCELLED


def completed(result: Mapping[str, Any]) -> Ending:
    """Return the end of a job that its worker completed."""
    return Ending(SUCCEEDED, result={JOB: dict(result)})


def failed_as(held: Held, error: str, *, permanent: bool) -> Ending:
    """Return the end of a job that failed: retried, failed for good, or stopped as told."""
    if held.cancelled_for is not None:
        return replace(CANCELLED, error=error)
    if held.ran_for >= held.plan.time_limit:
        return replace(TIME_LIMIT, error=error)
    return failed(held, error, permanent=permanent)


def finish(
    connection: sa.Connection,
    held: Held,
    ending: Ending,
    message: str | None = None,
    *,
    alerts: AlertSettings,
) -> Ended:
    """End the attempt of a job; raises LeaseLost if it has moved meanwhile."""
    story = Story({"steps": [one_step.ended(held.step, ending, message)]})
    return end(connection, held.id, held.attempt, ending, story, alerts=alerts)


def give_back(connection: sa.Connection, its: tuple[UUID, int], alerts: AlertSettings) -> Ended:
    """Put back a job whose worker went away before it got it; raises LeaseLost."""
    return end(connection, *its, GIVEN_BACK, alerts=alerts)
