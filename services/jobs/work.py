"""What workers of any language report of the jobs that they hold."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from minutebook.lease import CANCELLED
from models.errors import LeaseLost, NotFound
from models.job import JOB, id_of
from models.operation import AttemptKey, OperationState
from models.sql import read_clock
from models.store.operations import external_worker, heartbeat, jobs, put_back
from models.store.operations.end import EndResult, Outcome, end
from models.store.operations.external_worker import key_of
from models.store.operations.put_back import CUT_OFF
from models.store.operations.start_checks import OperationFacts
from models.store.operations.take import recorded_of
from models.store.scope import Scope
from models.values import format_instant
from runtime.database import reading
from runtime.logs.events import EventLog
from services.installation import Installation
from services.jobs.claim import JobToDo, send
from services.view import Seconds, View

logger = EventLog("minutebook.jobs")


@dataclass(frozen=True, slots=True)
class Held:
    """A job that a worker holds; its spans go by the database's clock."""

    key: AttemptKey
    facts: OperationFacts
    now: datetime

    @property
    def step(self) -> dict[str, Any]:
        """The one step of its operation."""
        return dict(self.facts.steps[0]) if self.facts.steps else {"name": JOB}

    @property
    def ran_s(self) -> float:
        """For how long it has run."""
        return max(0.0, (self.now - (self.facts.started_at or self.now)).total_seconds())

    @property
    def cancelled_s(self) -> float | None:
        """For how long a cancel has been requested, None if it has not."""
        asked_at = self.facts.cancel_requested_at
        return None if asked_at is None else (self.now - asked_at).total_seconds()

    @property
    def asked(self) -> str | None:
        """What its worker was asked to do: to stop, or nothing."""
        return None if self.facts.cancel_requested_at is None else CANCELLED


Decide = Callable[[Held], Outcome]


@dataclass(frozen=True, slots=True)
class WorkerTimes:
    """When a job was scheduled and picked up, as its worker measured it; None if it did not."""

    scheduled_at: datetime | None = None
    picked_up_at: datetime | None = None


UNKNOWN = WorkerTimes()
GIVEN_BACK = Outcome(OperationState.PENDING, reason="given back: its worker went away")


class JobStanding(View):
    """What a worker learns of the job that it holds."""

    stop: str | None = Field(description="Why to stop: `cancelled` or `time limit`; null to go on.")
    time_left_s: Seconds = Field(description="Seconds after which its lease ends in any case.")


def give_back(installation: Installation, job: JobToDo) -> None:
    """Put back a job whose worker went away before it got it."""
    key, alerts = key_of(job.lease), installation.settings.alert
    with installation.engine.begin() as connection:
        ended = end(connection, key, GIVEN_BACK, alerts=alerts)
    send(installation, ended)
    logger.info(
        "operation_given_back",
        "operation {operation} attempt {attempt}: given back, its worker went away",
        key.id,
        key.attempt,
    )


def keep(
    installation: Installation, job_id: str, lease: str | None, progress: Mapping[str, Any]
) -> JobStanding:
    """Renew a lease, and write progress if there is any; raises NotFound and LeaseLost.

    A job whose worker did not stop in time is ended.
    """
    settings = installation.settings.worker
    with installation.engine.begin() as connection:
        held = _held(connection, installation, job_id, lease)
        limits = settings.limits(held.facts.plan.time_limit)
        why = limits.why_stop(held.ran_s, held.asked)
        left_s = limits.left_s(held.ran_s, held.cancelled_s)
        if why is None or left_s:
            external_worker.beat(connection, held.key, progress)
            return JobStanding(stop=why, time_left_s=round(left_s, 3))
        ended = _finish(connection, installation, held, CUT_OFF[why], is_its_own=False)
    send(installation, ended)
    raise LeaseLost(f"job {job_id} was ended, {why}: its worker did not stop in time")


def complete(
    installation: Installation,
    job_id: str,
    lease: str | None,
    result: Mapping[str, Any],
    message: str | None = None,
    times: WorkerTimes = UNKNOWN,
) -> None:
    """End a job as its worker completed it; raises NotFound and LeaseLost."""
    completed = Outcome(OperationState.SUCCESS, result={JOB: dict(result)})
    done = _end(installation, job_id, lease, lambda _held: completed, message)
    if done is None:
        return
    held, _ = done
    with reading(installation.engine) as connection:
        next_at = jobs.next_run(connection, held.facts.action_uid)
    figures = _figures(held, times) | {"next_run_at": _written(next_at)}
    log_event(logging.INFO, "job_complete", {"job_id": job_id, **figures})


def fail(
    installation: Installation,
    job_id: str,
    lease: str | None,
    error: str,
    *,
    permanent: bool,
    times: WorkerTimes = UNKNOWN,
) -> None:
    """End a job as failed; its policy decides on a retry. Raises NotFound and LeaseLost."""

    def failed(held: Held) -> Outcome:
        limits = installation.settings.worker.limits(held.facts.plan.time_limit)
        why = limits.why_stop(held.ran_s, held.asked)
        if why is not None:
            return replace(CUT_OFF[why], error=error)
        return put_back.failed(held.facts.plan, held.facts.failures, error, permanent=permanent)

    done = _end(installation, job_id, lease, failed)
    if done is None:
        return
    held, ended = done
    is_retried = ended.state is OperationState.PENDING
    with reading(installation.engine) as connection:
        retry_at = jobs.next_try(connection, held.key.id) if is_retried else None
        next_at = jobs.next_run(connection, held.facts.action_uid)
    after = {"will_retry_at": _written(retry_at), "next_run_at": _written(next_at)}
    figures = {"error": error, **_figures(held, times), **after}
    log_event(logging.WARNING, "job_error", {"job_id": job_id, **figures})


def _written(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)


def _end(
    installation: Installation,
    job_id: str,
    lease: str | None,
    decide: Decide,
    message: str | None = None,
) -> tuple[Held, EndResult] | None:
    """End a job; None if its worker did so before, and reports again."""
    with installation.engine.begin() as connection:
        try:
            held = _held(connection, installation, job_id, lease)
        except LeaseLost:
            if lease is None or not external_worker.has_ended(connection, key_of(lease)):
                raise
            return None
        ended = _finish(connection, installation, held, decide(held), message)
    send(installation, ended)
    return held, ended


def _finish(
    connection: sa.Connection,
    installation: Installation,
    held: Held,
    ending: Outcome,
    message: str | None = None,
    *,
    is_its_own: bool = True,
) -> EndResult:
    """End a job; `is_its_own`: as its worker says, who may say it again."""
    alerts = installation.settings.alert
    key = held.key if is_its_own else heartbeat.void(connection, held.key)
    return external_worker.finish(connection, key, held.step, ending, alerts, {"message": message})


def _held(
    connection: sa.Connection, installation: Installation, job_id: str, lease: str | None
) -> Held:
    """Return a job that a worker holds; raises NotFound, or LeaseLost if it is no longer held."""
    scope = installation.scope
    key = jobs.first_attempt(connection, job_id, scope) if lease is None else key_of(lease)
    facts = recorded_of(connection, key.id, key.attempt)
    job = None if facts is None else facts.plan.job
    if facts is None or job is None or id_of(job.url) != job_id or not _may_see(scope, facts):
        raise NotFound(f"no job {job_id} was handed out under that lease")
    if not facts.is_running:
        text = f"{key.words} has moved meanwhile; it is {facts.state} now, and nothing was changed"
        raise LeaseLost(text)
    if not facts.is_held_by(key.secret):
        raise NotFound(f"no job {job_id} was handed out under that lease")
    return Held(key, facts, read_clock(connection))


def _may_see(scope: Scope, facts: OperationFacts) -> bool:
    return scope.small_app_id in {None, facts.small_app_id}


def _figures(held: Held, times: WorkerTimes) -> dict[str, object]:
    """Return the figures of a job that ended: as its worker measured them, else as recorded."""
    ran_s = held.ran_s
    waited_s = ((held.facts.started_at or held.now) - held.facts.recorded_at).total_seconds()
    if times.picked_up_at is not None:
        ran_s = max(0.0, (held.now - times.picked_up_at).total_seconds())
        if times.scheduled_at is not None:
            waited_s = (times.picked_up_at - times.scheduled_at).total_seconds()
    return {
        "operation_id": str(held.key.id),
        "duration_ms": round(ran_s * 1000),
        "wait_ms": round(waited_s * 1000),
    }


def log_event(level: int, event: str, fields: Mapping[str, object]) -> None:
    """Log an event with its fields: as words of the line, and as keys of a line of JSON."""
    text = " ".join([event, *(f"{key}={{{key}}}" for key in fields)])
    logger.log(level, event, text, *fields.values())
