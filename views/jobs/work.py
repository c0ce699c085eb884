"""What workers of any language do with jobs: take, keep, complete, report as failed."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from broker.sending import send_ended
from jobs import work
from models.errors import LeaseLost, NotFound
from models.job import id_of, listed_queue
from models.operation import OperationState
from models.store import ticks
from models.store.operations import jobs
from models.store.operations.admission import KeptBack, Recorded
from models.store.operations.claims import Claim, Wanted
from models.store.operations.finish import Ended, Ending
from models.store.operations.jobs import Held, Lane, Offer
from models.values import format_instant
from runtime.database import reading
from views.installation import Installation
from views.view import Instant, View

logger = logging.getLogger("minutehand.jobs")

Decide = Callable[[Held], Ending]


class JobToDo(View):
    """A job that was handed out; its worker alone may report it, under its lease."""

    id: str = Field(description="Its id: the first 12 hex digits of the SHA-1 of its URL.")
    url: str
    interval_s: float | None = Field(description="Its interval; null if it has another rule.")
    meta: dict[str, Any]
    operation_id: UUID
    lease: str = Field(description="To be sent with each report.")
    lease_s: float = Field(description="Without a report for so long, another worker gets it.")
    scheduled_at: Instant


class JobStanding(View):
    """What a worker learns of the job that it holds."""

    stop: str | None = Field(description="Why to stop: `cancelled` or `time limit`; null to go on.")
    time_left_s: float = Field(description="Seconds after which its lease ends in any case.")


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
        ticks.worker_seen(connection, ticks.Seen(name, listed, pid))


def note_stop(installation: Installation, name: str) -> None:
    """Record that no worker asks this process any more."""
    with installation.engine.begin() as connection:
        ticks.worker_stopped(connection, name)


def take(installation: Installation, offer: Offer, worker: str) -> JobToDo | None:
    """Take a job for a worker; None if it does not start."""
    settings = installation.settings
    its = (offer.id, offer.attempt)
    found = work.take(installation.engine, its, worker, settings.alert)
    if isinstance(found, KeptBack):
        logger.info("operation %s attempt %d: not started, %s", *its, found.why)
        _send(installation, found.ended)
        return None
    return _to_do(found, offer.attempt, settings.worker.lease_s)


@dataclass(frozen=True, slots=True)
class Taken:
    """Jobs that were taken together, and the operations that `take` decides about."""

    jobs: dict[UUID, JobToDo]
    undecided: set[UUID]


def take_all(installation: Installation, wanted: Sequence[tuple[Offer, str]]) -> Taken:
    """Take jobs, each for a worker, in one transaction, where no rule has to look further."""
    lease_s = installation.settings.worker.lease_s
    asked = [Wanted(offer.id, offer.attempt, worker) for offer, worker in wanted]
    taken = work.take_all(installation.engine, asked)
    attempts = {one.id: one.attempt for one in asked}
    found = {one.id: _to_do(one, attempts[one.id], lease_s) for one in taken.started}
    jobs = {id: job for id, job in found.items() if job is not None}
    return Taken(jobs, taken.undecided)


def _to_do(found: Claim | Recorded, attempt: int, lease_s: float) -> JobToDo | None:
    logger.info("%s: operation %s started (attempt %d)", found.triggerer, found.id, attempt)
    job, every = found.plan.job, found.plan.every
    if job is None:
        return None
    return JobToDo(
        id=id_of(job.url),
        url=job.url,
        interval_s=None if every is None else every.total_seconds(),
        meta=job.meta,
        operation_id=found.id,
        lease=f"{found.id.hex}-{attempt}",
        lease_s=lease_s,
        scheduled_at=found.occurrence_at,
    )


def give_back(installation: Installation, job: JobToDo) -> None:
    """Put back a job whose worker went away before it got it."""
    engine, alerts = installation.engine, installation.settings.alert
    its = _lease(job.lease)
    with engine.begin() as connection:
        ended = work.give_back(connection, its, alerts)
    _send(installation, ended)
    logger.info("operation %s attempt %d: given back, its worker went away", *its)


def keep(
    installation: Installation, job_id: str, lease: str, progress: Mapping[str, Any]
) -> JobStanding:
    """Renew a lease, and write progress if there is any; raises NotFound and LeaseLost.

    A job whose worker did not stop in time is ended.
    """
    settings = installation.settings
    with installation.engine.begin() as connection:
        held = _held(connection, installation, job_id, lease)
        ending = work.overrun(held, settings.worker)
        if ending is None:
            now = work.keep(connection, held, progress, settings.worker)
            left_s = now.time_left / timedelta(seconds=1)
            return JobStanding(stop=now.stop, time_left_s=round(left_s, 3))
        ended = work.finish(connection, held, ending, alerts=settings.alert)
    _send(installation, ended)
    raise LeaseLost(f"job {job_id} was ended, {ending.reason}: its worker did not stop in time")


def complete(
    installation: Installation,
    job_id: str,
    lease: str,
    result: Mapping[str, Any],
    message: str | None = None,
) -> None:
    """End a job as its worker completed it; raises NotFound and LeaseLost."""
    held, _ = _end(installation, job_id, lease, lambda _held: work.completed(result), message)
    with reading(installation.engine) as connection:
        next_at = jobs.next_run(connection, held.action_uid)
    _log(logging.INFO, "job_complete", job_id, held, next_run_at=_written(next_at))


def fail(
    installation: Installation, job_id: str, lease: str, error: str, *, permanent: bool
) -> None:
    """End a job as failed; its policy decides on a retry. Raises NotFound and LeaseLost."""

    def failed(held: Held) -> Ending:
        return work.failed_as(held, error, permanent=permanent)

    held, ended = _end(installation, job_id, lease, failed)
    at = None
    if ended.state is OperationState.PENDING:
        with reading(installation.engine) as connection:
            at = jobs.next_try(connection, held.id)
    more = {"reported": error, "will_retry_at": _written(at)}
    _log(logging.WARNING, "job_error", job_id, held, **more)


def _written(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)


def _end(
    installation: Installation,
    job_id: str,
    lease: str,
    decide: Decide,
    message: str | None = None,
) -> tuple[Held, Ended]:
    with installation.engine.begin() as connection:
        held = _held(connection, installation, job_id, lease)
        alerts = installation.settings.alert
        ended = work.finish(connection, held, decide(held), message, alerts=alerts)
    _send(installation, ended)
    return held, ended


def _held(connection: sa.Connection, installation: Installation, job_id: str, lease: str) -> Held:
    return jobs.held(connection, *_lease(lease), job_id, installation.scope)


def _lease(text: str) -> tuple[UUID, int]:
    """Return the operation and the attempt that a lease names; raises NotFound."""
    id, _, attempt = text.partition("-")
    try:
        return UUID(hex=id), int(attempt)
    except ValueError:
        raise NotFound(f"no job was handed out under the lease {text!r}") from None


def _send(installation: Installation, ended: Ended | None) -> None:
    installation.publish()
    send_ended(installation.engine, ended)


def _log(level: int, event: str, job_id: str, held: Held, **more: str | None) -> None:
    fields = {
        "job_id": job_id,
        "operation_id": str(held.id),
        "duration_ms": round(held.ran_for / timedelta(milliseconds=1)),
        "wait_ms": round(held.waited_for / timedelta(milliseconds=1)),
        **more,
    }
    log_event(level, event, fields)


def log_event(level: int, event: str, fields: Mapping[str, object]) -> None:
    """Log an event with its fields: as words of the line, and as keys of a line of JSON."""
    words = " ".join(f"{key}={value}" for key, value in fields.items())
    logger.log(level, "%s %s", event, words, extra={"event": event, **fields})
