"""Hand out jobs to workers of any language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from broker.sending import send_started
from models.job import JOB, id_of, listed_queue
from models.operation import OperationState
from models.store import workers
from models.store.operations import external_worker, jobs
from models.store.operations.end import EndResult, Outcome, end
from models.store.operations.jobs import Lane, Offer
from models.store.operations.start_checks import TAKEN, NotClaimed, NotStarted, OperationFacts
from models.store.operations.take import Claim, ClaimRequest, lock_unstarted, start_all
from models.worker_kinds import HTTP
from runtime.database import DATABASE_AWAY, reading
from runtime.db_retry import start
from runtime.logs.events import EventLog
from scheduler.events.dependants import send_ended
from services.installation import Installation
from services.jobs.documents import seconds_of
from services.view import Instant, Seconds, View

logger = EventLog("minutebook.jobs")

NO_JOB = Outcome(OperationState.FAILED, error="its action names no job", is_failure=True)


class JobToDo(View):
    """A job that was handed out; its worker alone may report it, under its lease."""

    id: str = Field(description="Its id: the first 12 hex digits of the SHA-1 of its URL.")
    url: str = Field(description="What to do.")
    interval_s: int | None = Field(description="Its interval; null if it has another rule.")
    meta: dict[str, Any] = Field(description="What the job was stored with.")
    operation_id: UUID = Field(description="Id of the operation.")
    lease: str = Field(description="To be sent with each report.")
    lease_s: Seconds = Field(description="Without a report for so long, another worker gets it.")
    scheduled_at: Instant = Field(description="The instant at which it was due.")


def offers(
    installation: Installation, asked: Mapping[Lane, int]
) -> dict[tuple[int, str], list[Offer]]:
    """Return jobs for waiting workers, by small app and queue, the first recorded first."""
    with reading(installation.engine) as connection:
        return jobs.offers(connection, asked)


def note_queues(installation: Installation, name: str, pid: int, queues: set[str]) -> None:
    """Record that workers ask this process for the jobs of these queues."""
    listed = ",".join(sorted(map(listed_queue, queues)))
    with installation.engine.begin() as connection:
        workers.beat(connection, workers.Heartbeat(name, listed, pid))


def note_stop(installation: Installation, name: str) -> None:
    """Record that no worker asks this process any more."""
    with installation.engine.begin() as connection:
        workers.stopped(connection, name)


def take(installation: Installation, wanted: ClaimRequest) -> JobToDo | None:
    """Take a job for a worker; None if it does not start."""
    found = start(wanted.id, lambda: _claim(installation, wanted), TAKEN)
    if isinstance(found, NotStarted):
        logger.info(
            "operation_not_started",
            "operation {operation} attempt {attempt}: not started, {reason}",
            wanted.id,
            wanted.attempt,
            found.why,
        )
        send(installation, found.ended)
        return None
    if found.owed:
        installation.publish()
        send_started(installation.engine, found.owed)
    return _to_do(found, wanted, installation.settings.worker.lease_s)


def send(installation: Installation, ended: EndResult | None) -> None:
    """Send what the end of a job released, and its notices; None if nothing ended."""
    installation.publish()
    send_ended(installation.engine, ended)


def _claim(installation: Installation, wanted: ClaimRequest) -> Claim | NotStarted:
    alerts, step = installation.settings.alert, external_worker.begun(JOB, repeatable=True)
    with installation.engine.begin() as connection:
        found = external_worker.take(connection, wanted, HTTP, step, alerts)
        if isinstance(found, Claim) and found.plan.job is None:
            ended = end(connection, found.key, NO_JOB, alerts=alerts)
            return NotStarted(NotClaimed.BROKEN, ended)
        if isinstance(found, Claim):
            jobs.spare_until_first_beat(connection, [found], installation.settings.worker.lease)
    return found


@dataclass(frozen=True, slots=True)
class Taken:
    """Jobs that were taken together, and the operations that `take` decides about."""

    jobs: dict[UUID, JobToDo]
    undecided: set[UUID]


def take_all(installation: Installation, wanted: Sequence[ClaimRequest]) -> Taken:
    """Take jobs, each for a worker, in one transaction, where no rule has to look further.

    If one of them makes the transaction fail, all are undecided. A job that another process is
    claiming is neither taken nor undecided.
    """
    try:
        with installation.engine.begin() as connection:
            found, started = _start_free(connection, wanted)
            lease = installation.settings.worker.lease
            jobs.spare_until_first_beat(connection, (found[id] for id in started), lease)
    except DATABASE_AWAY:
        raise
    except Exception as error:  # caused by one job; the caller then takes each alone
        # Otherwise another operation of an action started at the same moment.
        if not isinstance(error, sa.exc.IntegrityError):
            logger.exception(
                "jobs_not_taken", "{jobs} jobs could not be taken together", len(wanted)
            )
        return Taken({}, {one.id for one in wanted})
    lease_s = installation.settings.worker.lease_s
    to_do = {one.id: _to_do(found[one.id], one, lease_s) for one in wanted if one.id in started}
    taken = {id: job for id, job in to_do.items() if job is not None}
    return Taken(taken, found.keys() - started)


def _start_free(
    connection: sa.Connection, wanted: Sequence[ClaimRequest]
) -> tuple[dict[UUID, OperationFacts], set[UUID]]:
    """Return what is unstarted of these jobs, and which of it started: what no rule keeps back."""
    found = {one.id: one for one in lock_unstarted(connection, wanted)}
    free: dict[UUID, UUID] = {}
    for one in found.values():
        if one.is_free and one.plan.job is not None:
            free.setdefault(one.overlap_key or one.id, one.id)
    ids = set(free.values())
    starts = [one for one in wanted if one.id in ids]
    shown = external_worker.columns_of(external_worker.begun(JOB, repeatable=True))
    return found, start_all(connection, starts, shown) if starts else set()


def _to_do(found: OperationFacts, wanted: ClaimRequest, lease_s: float) -> JobToDo | None:
    logger.info(
        "operation_started",
        "{triggerer}: operation {operation} started (attempt {attempt})",
        found.triggerer,
        found.id,
        found.attempt,
    )
    job, every = found.plan.job, found.plan.every
    if job is None:
        return None
    return JobToDo(
        id=id_of(job.url),
        url=job.url,
        interval_s=seconds_of(every),
        meta=job.meta,
        operation_id=found.id,
        lease=external_worker.lease_of(wanted.key),
        lease_s=lease_s,
        scheduled_at=found.occurrence_at,
    )
